//! Plots over message size or job size: both axes logarithmic, drawn as SVG by hand.

use std::fmt::Write;

/// A line of a plot.
#[derive(Clone, Debug)]
pub struct Line {
    /// What it is of.
    pub name: String,
    /// Which colour: a system has the same in every plot; 0 is ours.
    pub colour: usize,
    /// Sizes and figures.
    pub points: Vec<(f64, f64)>,
}

/// What a plot is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across {
    /// Bytes of a message.
    Payload,
    /// Ranks of a job.
    Ranks,
}

impl Across {
    fn label(self) -> &'static str {
        match self {
            Across::Payload => "payload, bytes",
            Across::Ranks => "ranks",
        }
    }

    fn number(self, value: f64) -> String {
        match self {
            Across::Payload => size(value),
            Across::Ranks => format!("{value:.0}"),
        }
    }
}

/// A plot.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Above it.
    pub title: String,
    /// Below it.
    pub across: Across,
    /// What the figures are.
    pub unit: String,
    /// Its lines.
    pub lines: Vec<Line>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 590.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 380.0;
/// Colours that people who see fewer of them can tell apart; ours is the first.
const COLOURS: &[&str] = &["#0b5fa5", "#d55e00", "#009e73", "#a0409a", "#8a6d00", "#555555", "#56b4e9"];

/// Ends of a logarithmic axis.
struct Axis {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Axis {
    fn place(&self, value: f64) -> f64 {
        let share = (value.ln() - self.from.ln()) / (self.to.ln() - self.from.ln());
        self.start + share * (self.end - self.start)
    }
}

impl Plot {
    /// The picture; nothing if there is no line with two points.
    pub fn draw(&self) -> Option<String> {
        let lines: Vec<_> = self.lines.iter().filter(|line| line.points.len() > 1).collect();
        let points = || lines.iter().flat_map(|line| &line.points).filter(|p| p.0 > 0.0 && p.1 > 0.0);
        let (low, high) = (least(points().map(|p| p.1))?, most(points().map(|p| p.1))?);
        let (first, last) = (least(points().map(|p| p.0))?, most(points().map(|p| p.0))?);
        let (bottom, top) = (steps_below(low), steps_above(high));
        let x = Axis { from: first, to: last.max(2.0 * first), start: LEFT, end: RIGHT };
        let y = Axis { from: bottom, to: top, start: BOTTOM, end: TOP };

        let mut svg = String::new();
        // Writing to a string does not fail.
        let _ = self.frame(&mut svg, &x, &y);
        for (at, line) in lines.iter().enumerate() {
            let _ = draw_line(&mut svg, line, at, &x, &y);
        }
        svg.push_str("</svg>\n");
        Some(svg)
    }

    fn frame(&self, svg: &mut String, x: &Axis, y: &Axis) -> std::fmt::Result {
        writeln!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">"
        )?;
        writeln!(svg, "<title>{}</title>", escaped(&self.title))?;
        writeln!(svg, "<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>")?;
        writeln!(
            svg,
            "<text x=\"{LEFT}\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{}</text>",
            escaped(&self.title)
        )?;
        writeln!(svg, "<g stroke=\"#ddd\">")?;
        for value in steps(y.from, y.to) {
            let at = y.place(value);
            writeln!(svg, "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{RIGHT}\" y2=\"{at:.1}\"/>")?;
        }
        for value in powers_of_four(x.from, x.to) {
            let at = x.place(value);
            writeln!(svg, "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{BOTTOM}\"/>")?;
        }
        writeln!(svg, "</g>\n<g text-anchor=\"end\">")?;
        for value in steps(y.from, y.to) {
            writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                LEFT - 6.0,
                y.place(value) + 4.0,
                number(value)
            )?;
        }
        writeln!(svg, "</g>\n<g text-anchor=\"middle\">")?;
        for value in powers_of_four(x.from, x.to) {
            writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x.place(value),
                BOTTOM + 18.0,
                self.across.number(value)
            )?;
        }
        let middle = (LEFT + RIGHT) / 2.0;
        let below = self.across.label();
        writeln!(svg, "<text x=\"{middle}\" y=\"{:.1}\">{below}</text>", BOTTOM + 40.0)?;
        let (across, along) = (18.0, (TOP + BOTTOM) / 2.0);
        writeln!(
            svg,
            "<text x=\"{across}\" y=\"{along}\" transform=\"rotate(-90 {across} {along})\">{}</text>\n</g>",
            escaped(&self.unit)
        )
    }
}

fn draw_line(svg: &mut String, line: &Line, at: usize, x: &Axis, y: &Axis) -> std::fmt::Result {
    let places = line.points.iter().filter(|p| p.0 > 0.0 && p.1 > 0.0).map(|p| (x.place(p.0), y.place(p.1)));
    let places: Vec<_> = places.collect();
    let path: Vec<_> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let wide = if line.colour == 0 { 3.0 } else { 1.6 };
    let colour = COLOURS[line.colour % COLOURS.len()];
    writeln!(svg, "<g stroke=\"{colour}\" fill=\"{colour}\">")?;
    writeln!(svg, "<polyline points=\"{}\" fill=\"none\" stroke-width=\"{wide}\"/>", path.join(" "))?;
    for (x, y) in &places {
        writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{wide}\"/>")?;
    }
    let (key, down) = (RIGHT + 14.0, TOP + 10.0 + 20.0 * at as f64);
    writeln!(
        svg,
        "<line x1=\"{key}\" y1=\"{down}\" x2=\"{}\" y2=\"{down}\" stroke-width=\"{wide}\"/>",
        key + 20.0
    )?;
    let text = format!("<text x=\"{}\" y=\"{}\" stroke=\"none\" fill=\"#222\">", key + 26.0, down + 4.0);
    writeln!(svg, "{text}{}</text>\n</g>", escaped(&line.name))
}

fn least(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.min_by(f64::total_cmp)
}

fn most(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.max_by(f64::total_cmp)
}

/// 1, 2 and 5 times powers of ten, from a power of ten at least three decades below anything measured.
fn all_steps() -> impl Iterator<Item = f64> {
    (-4..13).flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10_f64.powi(power)))
}

fn steps(from: f64, to: f64) -> Vec<f64> {
    let within: Vec<f64> = all_steps().filter(|&s| s >= from * 0.999 && s <= to * 1.001).collect();
    // Over many decades only the decades.
    let decades = |s: &f64| (s.log10() - s.log10().round()).abs() < 1e-9;
    if within.len() > 12 { within.into_iter().filter(decades).collect() } else { within }
}

fn steps_below(value: f64) -> f64 {
    all_steps().filter(|&s| s <= value).last().unwrap_or(value)
}

fn steps_above(value: f64) -> f64 {
    all_steps().find(|&s| s >= value).unwrap_or(value)
}

fn powers_of_four(from: f64, to: f64) -> Vec<f64> {
    (0..20).map(|power| 2.0 * 4_f64.powi(power)).filter(|&size| size >= from && size <= to).collect()
}

fn number(value: f64) -> String {
    match value {
        _ if value >= 1e6 => format!("{:.0} M", value / 1e6),
        _ if value >= 1e4 => format!("{:.0} k", value / 1e3),
        _ if value >= 1.0 => format!("{value:.0}"),
        _ => format!("{value:.3}").trim_end_matches('0').to_owned(),
    }
}

fn size(bytes: f64) -> String {
    match bytes {
        _ if bytes >= 1048576.0 => format!("{:.0} Mi", bytes / 1048576.0),
        _ if bytes >= 1024.0 => format!("{:.0} Ki", bytes / 1024.0),
        _ => format!("{bytes:.0}"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Plot {
        let line = |name: &str, times: f64| Line {
            name: name.into(),
            colour: usize::from(times > 1.0),
            points: (3..17).map(|p| (2_f64.powi(p), times * (200.0 + 2_f64.powi(p)))).collect(),
        };
        let lines = vec![line("ours & <more>", 1.0), line("theirs", 3.0)];
        Plot { title: "Round trip <8 B>".into(), across: Across::Payload, unit: "ns".into(), lines }
    }

    /// The elements of a picture that open and do not close, and places outside of it.
    fn faults(svg: &str) -> Vec<String> {
        let (mut open, mut faults) = (Vec::new(), Vec::new());
        for part in svg.split('<').skip(1) {
            let Some((tag, rest)) = part.split_once('>') else {
                faults.push(format!("<{part} does not end"));
                continue;
            };
            let name = tag.split([' ', '/']).find(|n| !n.is_empty()).unwrap_or_default();
            if tag.starts_with('/') {
                if open.pop() != Some(name) {
                    faults.push(format!("</{name}>"));
                }
            } else if !tag.ends_with('/') {
                open.push(name);
            }
            if rest.contains('&') && !["&amp;", "&lt;", "&gt;"].iter().any(|e| rest.contains(e)) {
                faults.push(rest.to_owned());
            }
            if tag.matches('"').count() % 2 == 1 || tag.contains("NaN") || tag.contains("inf") {
                faults.push(tag.to_owned());
            }
        }
        faults.extend(open.into_iter().map(|name| format!("<{name}>")));
        faults
    }

    #[test]
    fn a_plot_is_well_formed_and_has_all_of_its_lines() {
        let svg = plot().draw().unwrap();
        assert_eq!(faults(&svg), [""; 0]);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert_eq!((svg.matches("<polyline").count(), svg.matches("<circle").count()), (2, 28));
        assert!(
            svg.contains("ours &amp; &lt;more&gt;") && svg.contains(">32 Ki<") && svg.contains(">theirs<")
        );
    }

    #[test]
    fn faults_are_found() {
        assert_eq!(faults("<svg><g></svg>").len(), 2);
        assert_eq!(faults("<svg a=\"NaN\"/>").len(), 1);
        assert_eq!(faults("<text>a & b</text>").len(), 1);
    }

    #[test]
    fn larger_is_higher_and_further_right() {
        let axis = |from, to| Axis { from: 1.0, to: 100.0, start: from, end: to };
        assert!((axis(0.0, 10.0).place(10.0) - 5.0).abs() < 1e-9);
        assert!(axis(10.0, 0.0).place(50.0) < axis(10.0, 0.0).place(20.0));
    }

    #[test]
    fn an_empty_plot_is_none() {
        let mut plot = plot();
        plot.lines.iter_mut().for_each(|line| line.points.truncate(1));
        assert!(plot.draw().is_none());
    }

    #[test]
    fn axes_have_round_numbers() {
        assert_eq!((steps_below(61.0), steps_above(61.0)), (50.0, 100.0));
        assert_eq!(steps(50.0, 500.0), [50.0, 100.0, 200.0, 500.0]);
        assert!(steps(1.0, 1e6).iter().all(|s| s.log10().fract().abs() < 1e-9));
        assert_eq!([0.05, 1.0, 2000.0, 20000.0, 5e6].map(number).join(" "), "0.05 1 2000 20 k 5 M");
    }
}
