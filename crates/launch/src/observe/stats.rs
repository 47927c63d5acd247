//! The counts of a job: for people, and for programs.

use std::io;

use gasworks_core::observe::{CLASSES, Op, Recording, Tally, class_name};
use serde_json::{Value, json};

use super::Origin;

/// Two tables: all ranks together by operation and size, then rank by rank.
pub(super) fn table(ranks: &[Recording]) -> String {
    let mut rows = vec![["operation", "size", "count", "bytes"].map(str::to_owned).to_vec()];
    for op in Op::ALL {
        for class in 0..CLASSES.len() {
            let (count, bytes) = sum(ranks.iter().map(|rank| rank.count(op, class)));
            if count > 0 {
                rows.push(vec![op.name().into(), class_name(class).into(), grouped(count), grouped(bytes)]);
            }
        }
    }
    let by_operation = align(&rows, 2);

    let ops: Vec<Op> =
        Op::ALL.into_iter().filter(|&op| ranks.iter().any(|rank| rank.total(op).0 > 0)).collect();
    let mut columns = vec![vec!["rank".to_owned()]];
    columns[0].extend((0..ranks.len()).map(|rank| rank.to_string()).chain(["all".into()]));
    let mut column = |name: &str, values: Vec<u64>| {
        let all = values.iter().fold(0, |sum: u64, value| sum.saturating_add(*value));
        columns.push(
            std::iter::once(name.to_owned()).chain(values.into_iter().chain([all]).map(grouped)).collect(),
        );
    };
    for op in ops {
        column(op.name(), ranks.iter().map(|rank| rank.total(op).0).collect());
    }
    for tally in Tally::ALL {
        column(tally.name(), ranks.iter().map(|rank| rank.tally(tally)).collect());
    }
    let by_rank = align(&columns, 1);
    format!("counts of {} ranks together\n{by_operation}\ncounts of each rank\n{by_rank}", ranks.len())
}

/// The same as JSON, with every size class of every rank.
pub(super) fn json(ranks: &[Recording], origins: &[Origin], out: &mut impl io::Write) -> io::Result<()> {
    let all: Vec<&Recording> = ranks.iter().collect();
    let by_rank: Vec<Value> = (0..)
        .zip(ranks.iter().zip(origins))
        .map(|(number, (rank, origin)): (u32, _)| of(Some((number, origin)), &[rank]))
        .collect();
    let lost = super::lost(origins);
    let whole = json!({ "ranks": ranks.len(), "lost": lost, "sum": of(None, &all), "by_rank": by_rank });
    serde_json::to_writer_pretty(&mut *out, &whole)?;
    writeln!(out)
}

fn of(which: Option<(u32, &Origin)>, ranks: &[&Recording]) -> Value {
    let places = Op::ALL.into_iter().flat_map(|op| (0..CLASSES.len()).map(move |class| (op, class)));
    let operations = places.filter_map(|(op, class)| {
        let (count, bytes) = sum(ranks.iter().map(|rank| rank.count(op, class)));
        let up_to = (class + 1 < CLASSES.len()).then(|| CLASSES[class]);
        let row = json!({ "operation": op.name(), "up_to": up_to, "count": count, "bytes": bytes });
        (count > 0).then_some(row)
    });
    let tallies = Tally::ALL.into_iter().map(|tally| {
        let values = ranks.iter().map(|rank| (rank.tally(tally), 0));
        (tally.name().to_owned(), Value::from(sum(values).0))
    });
    let mut value = json!({
        "operations": operations.collect::<Vec<_>>(),
        "tallies": tallies.collect::<serde_json::Map<_, _>>(),
    });
    if let (Some((number, origin)), [rank]) = (which, ranks) {
        value["rank"] = number.into();
        value["pid"] = rank.pid.into();
        if let Some(host) = &origin.host {
            value["host"] = host.as_str().into();
        }
    }
    value
}

fn sum(values: impl Iterator<Item = (u64, u64)>) -> (u64, u64) {
    values.fold((0, 0), |(a, b), (x, y)| (a.saturating_add(x), b.saturating_add(y)))
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Lines of cells under each other: the first `left` of each flush left, the others flush right.
fn align(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| {
            if at < left { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_core::observe::{Recorder, create};
    use std::os::fd::AsFd;

    fn recorded(puts: u64) -> Recording {
        let file = create(0).expect("a file");
        let recorder = Recorder::join(file.as_fd(), 0).expect("a recorder");
        (0..puts).for_each(|_| recorder.count(Op::Put, 1000));
        Recording::read(&file).expect("a recording")
    }

    #[test]
    fn numbers_are_grouped() {
        let texts = [0, 999, 1000, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn tables_and_json_have_the_ranks_and_their_sum() {
        let ranks = [recorded(2), recorded(1500)];
        let text = table(&ranks);
        assert!(text.contains("put        513 B-4 KiB  1,502  1,502,000\n"), "{text}");
        let columns: Vec<&str> = text.lines().filter(|line| line.starts_with("put ")).collect();
        let numbers: Vec<&str> = columns[1].split_whitespace().collect();
        assert_eq!(numbers, ["put", "2", "1,500", "1,502"], "{text}");
        assert!(!text.contains("\nget") && text.contains("\nempty polls"), "{text}");
        let mut out = Vec::new();
        let origins = [true, false].map(|is_whole| Origin { is_whole, ..Origin::default() });
        json(&ranks, &origins, &mut out).expect("written");
        let value: Value = serde_json::from_slice(&out).expect("JSON");
        let row = |of: &Value| of["operations"][0].clone();
        assert_eq!(
            row(&value["sum"]),
            json!({ "operation": "put", "up_to": 4096, "count": 1502, "bytes": 1_502_000 })
        );
        assert_eq!(
            (&value["by_rank"][1]["rank"], &row(&value["by_rank"][1])["count"]),
            (&json!(1), &json!(1500))
        );
        assert_eq!(value["sum"]["tallies"]["polls"], 0);
    }
}
