//! Prints what a run would have taken: `ugni-clock CHIP TRACE...`; when it would have come to its marks:
//! `ugni-clock CHIP --marks TRACE...`; or what the model is worth: `ugni-clock CHIP --curve`.

use std::process::ExitCode;

use gasworks_ugni_sim::clock::model::Model;
use gasworks_ugni_sim::clock::replay::replay;
use gasworks_ugni_sim::clock::trace::Record;
use gasworks_ugni_sim::clock::{curve, report};

fn main() -> ExitCode {
    match run() {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("ugni-clock: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, String> {
    let mut words = std::env::args();
    let (_, chip) = (words.next(), words.next());
    let model = match chip.as_deref() {
        Some("aries") => Model::parse(Model::ARIES)?,
        Some("gemini") => Model::parse(Model::GEMINI)?,
        _ => {
            return Err(
                "wanted aries or gemini, and --curve or traces, these perhaps after --marks".to_owned()
            );
        }
    };
    let mut words: Vec<String> = words.collect();
    if words == ["--curve"] {
        return Ok(curve::table(&model));
    }
    let wants_marks = words.first().is_some_and(|word| word == "--marks");
    words.drain(..usize::from(wants_marks));
    if words.is_empty() {
        return Err("there is no trace".to_owned());
    }
    let read = |path: &String| {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        Record::parse_all(&text).map_err(|error| format!("{path}: {error}"))
    };
    let records = words.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let spent = replay(&model, &records);
    Ok(if wants_marks { report::marks(&words, &spent) } else { report::table(&words, &spent) })
}
