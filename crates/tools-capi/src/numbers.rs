//! Numbers, amounts of memory and answers as text.

const UNITS: &[u8] = b"KMGTPE";

/// Reads an integer: decimal or hexadecimal, perhaps with a unit (`K` for 1024, to `E`; `KB` and `KiB` alike; `B` for one),
/// and before a unit perhaps with a fraction. Without a unit it counts in `multiplier`s, 0 being as 1.
pub fn parse(text: &str, multiplier: u64) -> Option<i64> {
    let text = text.trim();
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let size = match rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
        Some(digits) => hexadecimal(digits, multiplier)?,
        None => decimal(rest, multiplier)?,
    };
    i64::try_from(if negative { -size } else { size }).ok()
}

fn hexadecimal(text: &str, multiplier: u64) -> Option<i128> {
    let end = text.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(text.len());
    let number = u64::from_str_radix(&text[..end], 16).ok()?;
    i128::from(number).checked_mul(i128::from(unit(&text[end..], multiplier)?))
}

fn decimal(text: &str, multiplier: u64) -> Option<i128> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], unit(&text[end..], multiplier)?);
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if number.contains('.') {
        let size = number.parse::<f64>().ok()? * unit as f64;
        return (size < i64::MAX as f64).then_some(size as i128);
    }
    i128::from(number.parse::<u64>().ok()?).checked_mul(i128::from(unit))
}

fn unit(text: &str, multiplier: u64) -> Option<u64> {
    let text = text.trim_start().to_ascii_uppercase();
    let Some(&first) = text.as_bytes().first() else { return Some(multiplier.max(1)) };
    if text == "B" {
        return Some(1);
    }
    let power = UNITS.iter().position(|u| *u == first)?;
    matches!(&text[1..], "" | "B" | "IB").then(|| 1 << (10 * (power + 1)))
}

/// A number as [`parse`] reads it again; an amount of memory in the largest unit of which it is a multiple.
pub fn format(value: i64, is_memory: bool) -> String {
    if !is_memory {
        return value.to_string();
    }
    let power = (value.trailing_zeros() / 10).min(UNITS.len() as u32);
    if value == 0 || power == 0 {
        return format!("{value} B");
    }
    format!("{} {}B", value >> (10 * power), char::from(UNITS[power as usize - 1]))
}

/// Reads a yes or a no.
pub fn answer(text: &str) -> Option<bool> {
    match text.trim().to_ascii_uppercase().as_str() {
        "Y" | "YES" | "T" | "TRUE" | "ON" => Some(true),
        "" | "N" | "NO" | "F" | "FALSE" | "OFF" => Some(false),
        number => Some(number.parse::<i64>().ok()? != 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read() {
        for (text, multiplier, wanted) in [
            ("0", 0, 0),
            (" 17 ", 0, 17),
            ("-3", 0, -3),
            ("+3", 1, 3),
            ("0x1F", 0, 31),
            ("0x10 K", 0, 16 << 10),
            ("2", 1 << 20, 2 << 20),
            ("2B", 1 << 20, 2),
            ("2k", 1 << 20, 2048),
            ("1.5G", 1, 3 << 29),
            ("3 MB", 1, 3 << 20),
            ("3MiB", 1, 3 << 20),
            ("1T", 1, 1 << 40),
            ("2P", 1, 2 << 50),
            ("9223372036854775807", 0, i64::MAX),
            ("-9223372036854775808", 0, i64::MIN),
        ] {
            assert_eq!(parse(text, multiplier), Some(wanted), "{text}");
        }
        for text in
            ["", "-", "x", "1x", "1KX", "1.2.3K", ".", "0x", "9223372036854775808", "8E", "K", "--1", "1 2"]
        {
            assert_eq!(parse(text, 1), None, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for value in
            [0, 1, -1, 1000, 1024, -2048, 1 << 20, 3 << 30, (3 << 30) + 1, 5 << 40, i64::MIN, i64::MAX]
        {
            for is_memory in [false, true] {
                assert_eq!(parse(&format(value, is_memory), 1 << 20), {
                    let unit = if is_memory { 1 } else { 1 << 20 };
                    value.checked_mul(unit)
                });
            }
        }
        assert_eq!(format(1536 << 10, true), "1536 KB");
        assert_eq!(format(16 << 20, true), "16 MB");
        assert_eq!(format(1000, true), "1000 B");
        assert_eq!(format(1 << 20, false), "1048576");
    }

    #[test]
    fn answers_are_read() {
        for text in ["y", "Yes", "1", "-1", "TRUE", "on"] {
            assert_eq!(answer(text), Some(true), "{text}");
        }
        for text in ["", "n", "NO", "0", "false", "off"] {
            assert_eq!(answer(text), Some(false), "{text}");
        }
        assert_eq!(answer("perhaps"), None);
    }
}
