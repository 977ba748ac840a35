//! Draws plots as SVG, without a library. The colours follow the reader's light
//! or dark scheme.

use std::fmt::Write as _;

use super::{Series, Span, Up, Who};
use crate::units;

const WIDTH: f64 = 720.0;

/// The distances of the axes from the left, right, top and bottom edge, in
/// pixels.
const LEFT: f64 = 76.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 70.0;
const BOTTOM: f64 = 52.0;

/// The height of a plot of lines, in pixels.
const HEIGHT: f64 = 400.0;

/// The height of a span's row, and the width of the names next to it, in
/// pixels.
const LINE: f64 = 26.0;
const NAMES: f64 = 380.0;

/// The width of one character, in pixels.
const CHARACTER: f64 = 7.0;

const STYLE: &str = "\
:root{--paper:#fff;--ink:#1f2328;--faint:#d1d9e0;--touchmark:#0969da;--watchman:#bc4c00;\
--chokidar:#1a7f37;--floor:#6e7781}\
@media(prefers-color-scheme:dark){:root{--paper:#0d1117;--ink:#e6edf3;--faint:#30363d;\
--touchmark:#58a6ff;--watchman:#f0883e;--chokidar:#3fb950;--floor:#8b949e}}\
.paper{fill:var(--paper)}text{fill:var(--ink);font:12px system-ui,sans-serif}\
.title{font-size:15px;font-weight:600}.grid{stroke:var(--faint)}\
.line{fill:none;stroke-width:2}.touchmark{stroke:var(--touchmark)}\
.too{stroke:var(--touchmark);stroke-dasharray:5 4}.watchman{stroke:var(--watchman)}\
.chokidar{stroke:var(--chokidar)}.floor{stroke:var(--floor)}.dot{fill:var(--paper);stroke-width:2;stroke-dasharray:none}";

impl Who {
    fn class(self) -> &'static str {
        match self {
            Self::Touchmark => "touchmark",
            Self::TouchmarkToo => "too",
            Self::Watchman => "watchman",
            Self::Chokidar => "chokidar",
            Self::Floor => "floor",
        }
    }
}

/// A logarithmic axis over whole decades, on a range of pixels.
#[derive(Clone, Copy)]
struct Axis {
    first: i32,
    decades: i32,
    from: f64,
    to: f64,
}

impl Axis {
    /// Returns an axis that includes all values above 0.
    fn of(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        let values = values.filter(|value| *value > 0.0);
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(0.0, f64::max);
        let (least, most) = if least > most {
            (1.0, 1.0)
        } else {
            (least, most)
        };
        let first = least.log10().floor() as i32;
        let last = most.log10().ceil() as i32;
        Self {
            first,
            decades: (last - first).max(1),
            from,
            to,
        }
    }

    fn at(self, value: f64) -> f64 {
        let part = (value.log10() - f64::from(self.first)) / f64::from(self.decades);
        self.from + part * (self.to - self.from)
    }

    /// Returns the position and the value of the start of each decade.
    fn marks(self) -> impl Iterator<Item = (f64, f64)> {
        (self.first..=self.first + self.decades).map(move |exponent| {
            let value = 10_f64.powi(exponent);
            (self.at(value), value)
        })
    }
}

/// Draws lines over a growing number of something.
pub(super) fn lines(title: &str, across: &str, up: Up, series: &[Series]) -> String {
    let points = series.iter().flat_map(|series| &series.points);
    let x = Axis::of(points.clone().map(|point| point.0), LEFT, WIDTH - RIGHT);
    let y = Axis::of(points.map(|point| point.1), HEIGHT - BOTTOM, TOP);
    let mut page = Page::new(HEIGHT, title);
    for (at, value) in x.marks() {
        page.line("grid", [at, TOP], [at, HEIGHT - BOTTOM]);
        let said = units::number(value);
        page.text(at, HEIGHT - BOTTOM + 18.0, "middle", &said);
    }
    for (at, value) in y.marks() {
        page.line("grid", [LEFT, at], [WIDTH - RIGHT, at]);
        page.text(LEFT - 8.0, at + 4.0, "end", &up.said(value));
    }
    page.text(
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 12.0,
        "middle",
        across,
    );
    page.text(LEFT, TOP - 10.0, "start", up.name());
    let mut legend = WIDTH - RIGHT;
    for series in series
        .iter()
        .rev()
        .filter(|series| !series.points.is_empty())
    {
        legend -= series.name.chars().count() as f64 * CHARACTER;
        page.text(legend, TOP - 28.0, "start", &series.name);
        page.line(
            &format!("line {}", series.who.class()),
            [legend - 30.0, TOP - 32.0],
            [legend - 6.0, TOP - 32.0],
        );
        legend -= 46.0;
    }
    for series in series {
        let class = series.who.class();
        let at: Vec<[f64; 2]> = series
            .points
            .iter()
            .map(|point| [x.at(point.0), y.at(point.1)])
            .collect();
        page.path(&format!("line {class}"), &at);
        for at in at {
            page.dot(class, at);
        }
    }
    page.end()
}

/// Draws spans from the median to rare values, one row each.
pub(super) fn spans(title: &str, spans: &[Span]) -> String {
    let values = spans.iter().flat_map(|span| span.micros);
    let x = Axis::of(values, NAMES, WIDTH - RIGHT - 10.0);
    let bottom = TOP + LINE * spans.len() as f64;
    let mut page = Page::new(bottom + BOTTOM, title);
    for (at, value) in x.marks() {
        page.line("grid", [at, TOP - 8.0], [at, bottom]);
        page.text(at, bottom + 18.0, "middle", &Up::Time.said(value));
    }
    page.text(
        (NAMES + WIDTH - RIGHT) / 2.0,
        bottom + 40.0,
        "middle",
        "p50, p99, p99.9",
    );
    for (n, span) in spans.iter().enumerate() {
        let y = TOP + LINE * (n as f64 + 0.5);
        let class = span.who.class();
        page.text(NAMES - 12.0, y + 4.0, "end", &span.name);
        let at = span.micros.map(|micros| [x.at(micros), y]);
        page.path(&format!("line {class}"), &at);
        for at in at {
            page.dot(class, at);
        }
    }
    page.end()
}

/// A drawing that is being built.
struct Page(String);

impl Page {
    fn new(height: f64, title: &str) -> Self {
        let mut page = Self(String::new());
        let _ = writeln!(
            page.0,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n<title>{0}</title>\n\
             <style>{STYLE}</style>\n<rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>\n\
             <text class=\"title\" x=\"20\" y=\"24\">{0}</text>",
            escaped(title),
        );
        page
    }

    fn line(&mut self, class: &str, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) {
        let _ = writeln!(
            self.0,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    fn path(&mut self, class: &str, points: &[[f64; 2]]) {
        if points.is_empty() {
            return;
        }
        let points: Vec<String> = points
            .iter()
            .map(|[x, y]| format!("{x:.1},{y:.1}"))
            .collect();
        let points = points.join(" ");
        let _ = writeln!(self.0, "<polyline class=\"{class}\" points=\"{points}\"/>");
    }

    fn dot(&mut self, class: &str, [x, y]: [f64; 2]) {
        let _ = writeln!(
            self.0,
            "<circle class=\"dot {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>"
        );
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, text: &str) {
        let text = escaped(text);
        let _ = writeln!(
            self.0,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    fn end(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_holds_its_values() {
        let axis = Axis::of([3.0, 0.0, 4_000.0].into_iter(), 0.0, 400.0);
        let marks: Vec<String> = axis
            .marks()
            .map(|(_, value)| Up::Time.said(value))
            .collect();
        assert_eq!(marks, ["1 us", "10 us", "100 us", "1 ms", "10 ms"]);
        assert!((axis.at(100.0) - 200.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_can_be_drawn() {
        let drawn = lines("<nothing>", "x", Up::Megabytes, &[]);
        assert!(drawn.contains("&lt;nothing&gt;") && !drawn.contains("NaN"));
        assert!(!spans("nothing", &[]).contains("NaN"));
    }
}
