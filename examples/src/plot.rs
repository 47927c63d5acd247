//! Draws a spectrum: as blocks in a terminal, and as SVG. Both scales of height are logarithmic, since the k-mers that
//! hold an error outnumber those of the genome, and both are to be seen.

use crate::spectrum::Spectrum;
use std::fmt::Write;

const ROWS: usize = 12;

/// How the multiplicities map to columns.
struct Columns {
    /// (lowest multiplicity, highest bin in the column)
    bars: Vec<(usize, u64)>,
    /// Multiplicities to a column.
    step: usize,
    /// Powers of ten up to the highest bar.
    decades: u32,
}

impl Columns {
    fn of(spectrum: &Spectrum, most: usize) -> Self {
        let last = (spectrum.extent() * 5 / 4).max(10);
        let step = last.div_ceil(most);
        let bars: Vec<_> = (1..=last)
            .step_by(step)
            .map(|low| (low, (low..low + step).map(|m| spectrum.bin(m)).max().unwrap_or(0)))
            .collect();
        let highest = bars.iter().map(|bar| bar.1).max().unwrap_or(0).max(1);
        Self { bars, step, decades: highest.ilog10() + 1 }
    }

    /// Height of a bin from 0 to 1; a bin with one k-mer still shows.
    fn height(&self, n: u64) -> f64 {
        if n == 0 { 0.0 } else { ((n as f64).log10() / f64::from(self.decades)).max(0.01) }
    }
}

fn power(decade: u32) -> String {
    match decade {
        0..3 => 10u32.pow(decade).to_string(),
        3..6 => format!("{} k", 10u32.pow(decade - 3)),
        _ => format!("{} M", 10u64.pow(decade.min(24) - 6)),
    }
}

/// The spectrum for a terminal `width` columns wide.
pub fn terminal(spectrum: &Spectrum, width: usize) -> String {
    const MARGIN: usize = 9;
    const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let columns = Columns::of(spectrum, width.saturating_sub(MARGIN).clamp(10, 100));
    let mut text = String::from("distinct k-mers (log scale) by multiplicity\n");
    let mut labelled = u32::MAX;
    for row in (0..ROWS).rev() {
        // A row is labelled with the power of ten whose line runs through it.
        let decade = ((row + 1) as f64 / ROWS as f64 * f64::from(columns.decades) - 1e-9).floor() as u32;
        let runs = f64::from(decade) / f64::from(columns.decades) * ROWS as f64 >= row as f64;
        let label = if runs && decade != labelled { power(decade) } else { String::new() };
        labelled = if label.is_empty() { labelled } else { decade };
        let _ = write!(text, "{label:>6} {}", if label.is_empty() { '│' } else { '┤' });
        for &(_, n) in &columns.bars {
            let eighths = (columns.height(n) * ROWS as f64 - row as f64) * 8.0;
            text.push(
                EIGHTHS
                    [if n > 0 && row == 0 { eighths.max(1.0) } else { eighths.max(0.0) }.min(8.0) as usize],
            );
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    let _ = writeln!(text, "{:>6} └{}", "", "─".repeat(columns.bars.len()));
    let mut ticks = String::new();
    for (i, &(low, _)) in columns.bars.iter().enumerate() {
        if (i == 0 || (low / columns.step).is_multiple_of(10)) && i >= ticks.len() {
            let _ = write!(ticks, "{:<pad$}{low}", "", pad = i - ticks.len());
            ticks.push(' ');
        }
    }
    let _ = writeln!(text, "{:>7} {}", "", ticks.trim_end());
    text
}

/// The spectrum as an SVG picture with a title.
pub fn svg(spectrum: &Spectrum, title: &str, note: &str) -> String {
    let (width, height) = (860.0, 460.0);
    let (left, top, right, bottom) = (70.0, 64.0, 24.0, 56.0);
    let columns = Columns::of(spectrum, 200);
    let (across, down) = (width - left - right, height - top - bottom);
    let pitch = across / columns.bars.len() as f64;
    let mut s = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"{left}\" y=\"26\" font-size=\"17\">{}</text>\n\
         <text x=\"{left}\" y=\"46\" fill=\"#666\">{}</text>\n",
        escape(title),
        escape(note)
    );
    for decade in 0..=columns.decades {
        let y = top + down * (1.0 - f64::from(decade) / f64::from(columns.decades));
        let _ = writeln!(
            s,
            "<line x1=\"{left}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            width - right,
            left - 8.0,
            y + 4.5,
            power(decade)
        );
    }
    let labels = (columns.bars.len() / 10).max(1);
    for (i, &(low, n)) in columns.bars.iter().enumerate() {
        let (x, high) = (left + pitch * i as f64, down * columns.height(n));
        if n > 0 {
            let _ = writeln!(
                s,
                "<rect x=\"{x:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{high:.1}\" fill=\"#2b6cb0\">\
                 <title>{low}: {n}</title></rect>",
                top + down - high,
                (pitch * 0.86).max(0.5)
            );
        }
        if i == 0 || (i + 1) % labels == 0 {
            let _ = writeln!(
                s,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{low}</text>",
                x + pitch * 0.43,
                top + down + 18.0
            );
        }
    }
    let _ = write!(
        s,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">times a k-mer was seen</text>\n\
         <text transform=\"translate(16 {:.1}) rotate(-90)\" text-anchor=\"middle\">distinct k-mers</text>\n</svg>\n",
        left + across / 2.0,
        height - 14.0,
        top + down / 2.0
    );
    s
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_humps() -> Spectrum {
        let humps = (1u32..60).flat_map(|m| {
            let at =
                |middle: f64, high: f64, wide: f64| high * (-((f64::from(m) - middle) / wide).powi(2)).exp();
            let n = at(1.0, 100_000.0, 1.0) + at(25.0, 2_000.0, 7.0);
            (0..n as u64).map(move |i| (u64::from(m) << 32 | i, m))
        });
        Spectrum::of(humps)
    }

    #[test]
    fn the_terminal_shows_both_humps_and_the_scales() {
        let text = terminal(&two_humps(), 72);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 1 + ROWS + 2, "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 72), "{text}");
        let bottom: Vec<char> = lines[ROWS].chars().skip(8).collect();
        let higher: Vec<char> = lines[ROWS - 4].chars().skip(8).collect();
        assert_eq!(bottom[0], '█', "{text}");
        assert_eq!(higher.get(24), Some(&'█'), "{text}");
        assert_eq!(higher.get(5).copied().unwrap_or(' '), ' ', "{text}");
        for label in ["100 k", "10 k", "100", " 1 "] {
            assert!(text.contains(label), "{label} in\n{text}");
        }
        assert!(lines[ROWS + 2].contains("10") && lines[ROWS + 2].contains("30"), "{text}");
    }

    #[test]
    fn nothing_and_a_narrow_terminal_are_drawn_too() {
        assert_eq!(terminal(&Spectrum::default(), 0).lines().count(), ROWS + 3);
        assert!(svg(&Spectrum::default(), "none", "").ends_with("</svg>\n"));
    }

    #[test]
    fn the_picture_has_a_bar_for_each_bin_and_a_safe_title() {
        let spectrum = two_humps();
        let picture = svg(&spectrum, "a < b & c", "note");
        assert!(picture.contains("a &lt; b &amp; c"));
        assert!(picture.contains(&format!("<title>25: {}</title>", spectrum.bin(25))));
        assert_eq!(picture.matches("<svg").count(), 1);
        assert!(!picture.contains("NaN") && !picture.contains("inf"));
    }
}
