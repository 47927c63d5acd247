//! What an example says of its own result.

use gasworks_testkit::Ended;

/// The example ends well, and says so in the words with which it reports its check.
pub fn verified(ended: &Ended, words: &str, ranks: usize) {
    assert!(ended.ok(), "{ranks} ranks: {}: {}", ended.how(), ended.output);
    let said = ended.output.lines().filter(|line| line.contains(words)).count();
    assert_eq!(said, 1, "{ranks} ranks: {}", ended.output);
}
