//! Every committed corpus, fed to its target.

use std::path::Path;

#[test]
fn every_corpus_is_survived() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, run) in gasworks_fuzz::TARGETS {
        let mut seeds = 0;
        for entry in std::fs::read_dir(corpora.join(name)).expect("the target has a corpus") {
            let path = entry.expect("an entry").path();
            println!("{}", path.display());
            run(&std::fs::read(&path).expect("a seed"));
            seeds += 1;
        }
        assert!(seeds >= 3, "{name} has {seeds} seeds");
    }
}

#[test]
fn every_corpus_has_a_target() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for entry in std::fs::read_dir(corpora).expect("the corpora") {
        let name = entry.expect("an entry").file_name();
        assert!(gasworks_fuzz::TARGETS.iter().any(|(target, _)| name == *target), "{name:?}");
    }
}
