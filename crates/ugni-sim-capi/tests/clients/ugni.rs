//! The NIC: programs as clients of the genuine library write them, on both chips and in all moods, as several processes.

use super::program::{Programs, run, said};

/// Runs a program with so many ranks on both chips, in the plain mood and as many adversarial ones; the rows `ugni-sim` of the
/// matrix try more.
fn go(programs: &Programs, form: &str, ranks: &[u32], seeds: u32) {
    for chip in ["gemini", "aries"] {
        for ranks in ranks {
            for seed in 0..=seeds {
                let mood = if seed == 0 { "plain" } else { "adversarial" };
                let mut command = programs.ranks(form, *ranks);
                command.env("GASWORKS_UGNI_CHIP", chip).env("GASWORKS_UGNI_MOOD", mood);
                assert_eq!(run(command.env("GASWORKS_UGNI_SEED", seed.to_string())), "all is well\n");
            }
        }
    }
}

fn of(name: &str) -> Programs {
    Programs::shared(name, &["ugni", "pmi"])
}

fn of_all(name: &str) -> Programs {
    Programs::shared(name, &["ugni", "udreg", "pmi"])
}

/// Data that goes around at every alignment, with its events and flags.
#[test]
fn transfers() {
    let programs = Programs::of("transfers", &["ugni", "pmi"]);
    go(&programs, "shared", &[3], 1);
    go(&programs, "static", &[2], 0);
}

#[test]
fn atomics() {
    go(&of("atomics"), "shared", &[8], 1);
}

#[test]
fn overrun_and_recovery() {
    go(&of("overrun"), "shared", &[2, 5], 1);
}

#[test]
fn errors() {
    go(&of("errors"), "shared", &[2, 3], 1);
}

#[test]
fn waiting() {
    go(&of("waiting"), "shared", &[4], 1);
}

/// A rendezvous.
#[test]
fn datagrams() {
    go(&of("datagrams"), "shared", &[3, 8], 1);
}

/// Short messages around a ring, with tags, credits and all.
#[test]
fn messages() {
    go(&of("messages"), "shared", &[2, 5], 1);
}

#[test]
fn chains() {
    go(&of("chains"), "shared", &[2, 4], 1);
}

/// Who does what the interface asks for gets through.
#[test]
fn faults_are_survived() {
    let programs = of_all("faults");
    let mut command = programs.ranks("shared", 2);
    let faults = "GNI_MemRegister:ERROR_RESOURCE@2 UDREG_Register:NO_SPACE@2 UDREG_Evict:NO_MATCH@2 \
                  GNI_PostFma:ERROR_RESOURCE%10 transaction:lost%2 transaction:congested%2";
    assert_eq!(run(command.env("GASWORKS_UGNI_FAULTS", faults)), "all is well\n");
    for (wrong, why) in [
        ("GNI_PostFma:NO_SUCH@1", "there is no such place, or it cannot fail so"),
        ("GNI_NoSuch:TIMEOUT@1", "there is no such place, or it cannot fail so"),
        ("queue:overrun", "wanted one @ or one %"),
    ] {
        let output =
            programs.ranks("shared", 2).env("GASWORKS_UGNI_FAULTS", wrong).output().expect("it starts");
        let text = said(&output);
        assert!(!output.status.success() && text.contains("GNI_CdmAttach"), "{text}");
        assert!(text.contains(&format!("setting GASWORKS_UGNI_FAULTS: {wrong:?}: {why}")), "{text}");
    }
}

/// What was asked of the NIC is written down, by each process for itself.
#[test]
fn a_witness_tells_what_was_asked() {
    let programs = of("chains");
    let dir = tempfile::tempdir().expect("a directory");
    let mut command = programs.ranks("shared", 2);
    assert_eq!(run(command.env("GASWORKS_UGNI_WITNESS", dir.path().join("w"))), "all is well\n");
    let files: Vec<_> = std::fs::read_dir(dir.path()).expect("it is there").flatten().collect();
    assert_eq!(files.len(), 2);
    for file in files {
        let text = std::fs::read_to_string(file.path()).expect("text");
        let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let count = |call: &str, code: &str| all["calls"][call][code].as_u64();
        assert_eq!(count("GNI_CdmAttach", "GNI_RC_SUCCESS"), Some(1), "{text}");
        assert_eq!(count("GNI_CtPostFma", "GNI_RC_SUCCESS"), Some(3), "{text}");
        assert_eq!(count("GNI_CtPostFma", "GNI_RC_INVALID_PARAM"), Some(2), "{text}");
        assert_eq!(count("GNI_CtPostFma", "GNI_RC_SIZE_ERROR"), Some(1), "{text}");
        assert_eq!(count("GNI_GetDeviceType", "GNI_RC_ERROR_RESOURCE"), None, "{text}");
        assert_eq!(all["posted"]["GNI_POST_FMA_PUT"]["bytes"].as_u64(), Some(88), "{text}");
        assert_eq!(file.file_name().to_string_lossy(), format!("w.{}.json", all["process"]));
    }
}

#[test]
fn a_peer_may_be_killed() {
    let programs = of("killed");
    for mood in ["plain", "adversarial"] {
        assert_eq!(run(programs.alone("shared").env("GASWORKS_UGNI_MOOD", mood)), "all is well\n");
    }
}

/// Registrations that are named by a place.
#[test]
fn virtual_descriptors() {
    go(&of("vmdh"), "shared", &[2, 3], 1);
}

#[test]
fn completion_channels() {
    go(&of("channels"), "shared", &[2, 4], 1);
}

/// What the NIC says of its resources, its statistics, its errors.
#[test]
fn queries() {
    go(&of("queries"), "shared", &[2, 3], 1);
}
