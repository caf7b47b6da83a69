# SPDX-License-Identifier: GPL-2.0-only
"""Line plots as SVG: a title, two axes from 0 on, a legend."""
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 80, 20, 40, 60
COLOURS = ("#1f5fa8", "#c1501b", "#3a8a3a", "#7a3f98", "#806000", "#404040")
STEPS = 5


def nice(top):
    """The first of 1, 2, 2.5 and 5 times a power of ten that STEPS of reach
    TOP."""
    size = 1e-9
    while True:
        for k in (1, 2, 2.5, 5):
            if k * size * STEPS >= top:
                return k * size
        size *= 10


def lines(path, title, x_name, y_name, series):
    """series: {name: [(x, y), ...]}."""
    x_step = nice(max(x for s in series.values() for x, _ in s))
    y_step = nice(max(y for s in series.values() for _, y in s))

    def at(x, y):
        return (LEFT + x / (x_step * STEPS) * (WIDTH - LEFT - RIGHT),
                HEIGHT - BOTTOM - y / (y_step * STEPS)
                * (HEIGHT - TOP - BOTTOM))

    def text(x, y, words, anchor="middle", more=""):
        return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>'
                f'{escape(words)}</text>')

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
           f'height="{HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           text(WIDTH / 2, TOP / 2, title, more=' font-size="14"')]
    for i in range(STEPS + 1):
        (x, low), (_, y) = at(i * x_step, 0), at(0, i * y_step)
        out += [f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}M{x:.1f} {TOP}'
                f'V{low:.1f}" stroke="#ddd" fill="none"/>',
                text(x, low + 18, f"{i * x_step:g}"),
                text(LEFT - 6, y + 4, f"{i * y_step:g}", "end")]
    out += [text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 20, x_name),
            text(16, (TOP + HEIGHT - BOTTOM) / 2, y_name, more=' transform='
                 f'"rotate(-90 16 {(TOP + HEIGHT - BOTTOM) / 2})"')]
    for i, (name, points) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        where = " ".join("%.1f,%.1f" % at(*p) for p in points)
        y = TOP + 14 + 16 * i
        out += [f'<polyline points="{where}" stroke="{colour}" '
                'stroke-width="2" fill="none"/>',
                *(f'<circle cx="{at(*p)[0]:.1f}" cy="{at(*p)[1]:.1f}" r="3" '
                  f'fill="{colour}"/>' for p in points),
                f'<path d="M{WIDTH - 230} {y - 4}h24" stroke="{colour}" '
                'stroke-width="2"/>',
                text(WIDTH - 200, y, name, "start")]
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join([*out, "</svg>", ""]))
