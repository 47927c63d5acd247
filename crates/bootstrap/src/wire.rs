//! The PMI-2 wire format, without input or output: bytes in, messages out, and back.
//!
//! A conversation opens with one line each way in the style of PMI-1 (`cmd=init pmi_version=2 ...\n`). After that a
//! message is a length, six characters of decimal digits padded with blanks, and so many bytes
//! `cmd=NAME;key=value;key=value;`, where `;;` inside a value stands for one `;`. Both sides use this module, and
//! nothing that comes from the other side is believed before it was checked here.

/// The longest payload of a message.
pub const MAX_PAYLOAD: usize = 64 << 10;
/// The longest key.
pub const MAX_KEY: usize = 64;
/// The longest line: a message of PMI-1, or the opening of PMI-2.
pub const MAX_LINE: usize = 1024;
/// The length of the length.
const LENGTH: usize = 6;

/// What is wrong with a message, with the offending text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WireError(pub(crate) String);

/// A command or a response: its name, and what goes with it in the order of the wire.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Message {
    /// The name.
    pub command: String,
    /// Keys and values.
    pub pairs: Vec<(String, String)>,
}

/// Text from the other side as it may stand in a message to a person: printable and not too long.
pub fn quote(text: &[u8]) -> String {
    const MOST: usize = 80;
    let shown = text[..text.len().min(MOST)].escape_ascii();
    if text.len() > MOST { format!("\"{shown}\"... ({} bytes)", text.len()) } else { format!("\"{shown}\"") }
}

fn wrong<T>(what: impl Into<String>) -> Result<T, WireError> {
    Err(WireError(what.into()))
}

impl Message {
    /// A message without pairs.
    pub fn new(command: &str) -> Self {
        Self { command: command.to_owned(), pairs: Vec::new() }
    }

    /// Adds a pair.
    pub fn with(mut self, key: &str, value: impl ToString) -> Self {
        self.pairs.push((key.to_owned(), value.to_string()));
        self
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// The value of a key that must be there.
    pub fn need(&self, key: &str) -> Result<&str, WireError> {
        match self.get(key) {
            Some(value) => Ok(value),
            None => wrong(format!("{} came without {key}", quote(self.command.as_bytes()))),
        }
    }

    /// The number under a key that must be there.
    pub fn number(&self, key: &str) -> Result<i64, WireError> {
        let value = self.need(key)?;
        match value.trim().parse() {
            Ok(number) => Ok(number),
            Err(_) => wrong(format!("{key}={} is no whole number", quote(value.as_bytes()))),
        }
    }

    /// The bytes of the message, its length first.
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        let mut payload = format!("cmd={};", self.command);
        for (key, value) in &self.pairs {
            check_key(key.as_bytes())?;
            payload.push_str(key);
            payload.push('=');
            payload.push_str(&value.replace(';', ";;"));
            payload.push(';');
        }
        if payload.len() > MAX_PAYLOAD {
            return wrong(format!(
                "a message of {} bytes is longer than the {MAX_PAYLOAD} that the protocol allows: {}",
                payload.len(),
                quote(payload.as_bytes())
            ));
        }
        let mut bytes = format!("{:>LENGTH$}", payload.len()).into_bytes();
        bytes.append(&mut payload.into_bytes());
        Ok(bytes)
    }

    /// The message as a line: those of PMI-1, and the opening of PMI-2.
    pub fn encode_line(&self) -> Vec<u8> {
        let mut line = format!("cmd={}", self.command);
        for (key, value) in &self.pairs {
            line.push_str(&format!(" {key}={value}"));
        }
        line.push('\n');
        line.into_bytes()
    }
}

fn check_key(key: &[u8]) -> Result<(), WireError> {
    if key.is_empty() || key.len() > MAX_KEY {
        return wrong(format!("the key {} has {} bytes: 1 to {MAX_KEY} are allowed", quote(key), key.len()));
    }
    if key.iter().any(|b| !b.is_ascii_graphic() || matches!(b, b'=' | b';')) {
        return wrong(format!("the key {} has characters that no key may have", quote(key)));
    }
    Ok(())
}

fn text(bytes: &[u8]) -> Result<String, WireError> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text.to_owned()),
        _ => wrong(format!("{} is not text", quote(bytes))),
    }
}

/// Splits off the command, which must be the first pair.
fn message(mut pairs: Vec<(String, String)>, whole: &[u8]) -> Result<Message, WireError> {
    match pairs.first() {
        Some((key, command)) if key == "cmd" && check_key(command.as_bytes()).is_ok() => {
            let command = command.clone();
            pairs.remove(0);
            Ok(Message { command, pairs })
        }
        _ => wrong(format!("{} does not begin with a command", quote(whole))),
    }
}

/// Parses a payload: what follows the length.
pub fn parse_payload(payload: &[u8]) -> Result<Message, WireError> {
    let mut pairs = Vec::new();
    let mut rest = payload;
    while !rest.is_empty() {
        let Some(equals) = rest.iter().position(|&b| b == b'=') else {
            return wrong(format!("{} has no '=' after the key {}", quote(payload), quote(rest)));
        };
        let key = &rest[..equals];
        check_key(key)?;
        rest = &rest[equals + 1..];
        let mut value = Vec::new();
        loop {
            let Some(end) = rest.iter().position(|&b| b == b';') else {
                return wrong(format!("{} has no ';' after the value of {}", quote(payload), quote(key)));
            };
            value.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            match rest.first() {
                Some(b';') => {
                    value.push(b';');
                    rest = &rest[1..];
                }
                _ => break,
            }
        }
        pairs.push((text(key)?, text(&value)?));
    }
    message(pairs, payload)
}

/// Takes one message from the front of what has come, if all of it is there.
pub fn take_message(inbox: &mut Vec<u8>) -> Result<Option<Message>, WireError> {
    // What is there already must look like the beginning of a length.
    let field = &inbox[..inbox.len().min(LENGTH)];
    if !field.iter().all(|b| b.is_ascii_digit() || *b == b' ') {
        return bad_length(field);
    }
    if field.len() < LENGTH {
        return Ok(None);
    }
    let length = match std::str::from_utf8(field.trim_ascii()).map(str::parse::<usize>) {
        Ok(Ok(length)) => length,
        _ => return bad_length(field),
    };
    if !(1..=MAX_PAYLOAD).contains(&length) {
        return wrong(format!("a message announces {length} bytes: 1 to {MAX_PAYLOAD} are allowed"));
    }
    let Some(payload) = inbox.get(LENGTH..LENGTH + length) else { return Ok(None) };
    let message = parse_payload(payload)?;
    inbox.drain(..LENGTH + length);
    Ok(Some(message))
}

fn bad_length<T>(field: &[u8]) -> Result<T, WireError> {
    wrong(format!("{} stands where the length of a message belongs", quote(field)))
}

/// Takes one line from the front of what has come, if all of it is there.
pub fn take_line(inbox: &mut Vec<u8>) -> Result<Option<Message>, WireError> {
    let Some(end) = inbox.iter().position(|&b| b == b'\n') else {
        return if inbox.len() <= MAX_LINE {
            Ok(None)
        } else {
            wrong(format!("the line {} does not end within {MAX_LINE} bytes", quote(inbox)))
        };
    };
    if end > MAX_LINE {
        return wrong(format!("the line {} is longer than {MAX_LINE} bytes", quote(&inbox[..end])));
    }
    let line: Vec<u8> = inbox.drain(..=end).collect();
    let line = &line[..end];
    let mut pairs = Vec::new();
    for word in line.split(|&b| b == b' ').filter(|word| !word.is_empty()) {
        let Some(equals) = word.iter().position(|&b| b == b'=') else {
            return wrong(format!("{} in the line {} has no '='", quote(word), quote(line)));
        };
        check_key(&word[..equals])?;
        pairs.push((text(&word[..equals])?, text(&word[equals + 1..])?));
    }
    message(pairs, line).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused(bytes: &[u8]) -> String {
        take_message(&mut bytes.to_vec()).expect_err("malformed").to_string()
    }

    #[test]
    fn a_recorded_message_is_read() {
        let mut inbox = b"   114cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=1;size=4;appnum=-1;debugged=FALSE;pmiverbose=FALSE;    27cmd=finalize".to_vec();
        let message = take_message(&mut inbox).expect("well-formed").expect("complete");
        assert_eq!((message.command.as_str(), message.number("size")), ("fullinit-response", Ok(4)));
        assert_eq!(message.number("appnum"), Ok(-1));
        assert_eq!(take_message(&mut inbox), Ok(None));
        inbox.extend_from_slice(b"-response;rc=0;");
        assert_eq!(
            take_message(&mut inbox).expect("well-formed").expect("complete").command,
            "finalize-response"
        );
        assert!(inbox.is_empty());
    }

    #[test]
    fn what_is_sent_looks_as_recorded() {
        let sent =
            Message::new("kvs-put").with("key", "k1.0.0").with("value", "v1.0").encode().expect("encoded");
        assert_eq!(sent, b"    34cmd=kvs-put;key=k1.0.0;value=v1.0;");
        let line = Message::new("init").with("pmi_version", 2).with("pmi_subversion", 0).encode_line();
        assert_eq!(line, b"cmd=init pmi_version=2 pmi_subversion=0\n");
    }

    #[test]
    fn every_malformed_message_names_what_is_wrong() {
        for (bytes, wanted) in [
            (b"abc".as_slice(), "\"abc\" stands where the length"),
            (b"     x", "\"     x\" stands where the length"),
            (b"      ", "stands where the length"),
            (b"  1 2 cmd=x;", "stands where the length"),
            (b"7\x0c    cmd=x;", "\"7\\x0c    \" stands where the length"),
            (b"    -1cmd=x;", "stands where the length"),
            (b"     0", "announces 0 bytes"),
            (b"999999", "announces 999999 bytes: 1 to 65536"),
            (b"     6cmd=x ", "\"cmd=x \" has no ';' after the value of \"cmd\""),
            (b"     7cmd=x;k", "no '=' after the key \"k\""),
            (b"     9cmd=x;key", "\"cmd=x;key\" has no '=' after the key \"key\""),
            (b"     4rc=;", "does not begin with a command"),
            (b"     5cmd=;", "does not begin with a command"),
            (b"     7cmd=a=;", "\"cmd=a=;\" does not begin with a command"),
            (b"     8cmd=x;=;", "the key \"\" has 0 bytes"),
            (b"    10cmd=x;a\n=;", "the key \"a\\n\" has characters"),
            (b"    10cmd=x;a;=;", "the key \"a;\" has characters that no key may have"),
            (b"     7cmd=\xff\xfe;", "\"\\xff\\xfe\" is not text"),
            (b"    10cmd=x;k=\0;", "\"\\x00\" is not text"),
        ] {
            let error = refused(bytes);
            assert!(error.contains(wanted), "{error} should say {wanted}");
        }
        let unsendable = Message::new("x").with("a=b", 1).encode().expect_err("no key").to_string();
        assert_eq!(unsendable, "the key \"a=b\" has characters that no key may have");
    }

    #[test]
    fn a_message_is_as_long_as_it_says() {
        let mut inbox = b"     6cmd=a;key=1;".to_vec();
        assert_eq!(take_message(&mut inbox), Ok(Some(Message::new("a"))));
        assert_eq!(inbox, b"key=1;");
    }

    #[test]
    fn a_payload_has_at_most_65536_bytes() {
        // A payload of so many bytes: `cmd=x;v=` and `;` stand around the value.
        let sized = |size: usize| Message::new("x").with("v", "y".repeat(size - 9));
        for size in [65_535, 65_536] {
            let bytes = sized(size).encode().expect("not too long");
            assert_eq!(bytes.len(), 6 + size);
            assert_eq!(take_message(&mut bytes.clone()), Ok(Some(sized(size))));
        }
        let error = sized(65_537).encode().expect_err("too long").to_string();
        assert!(error.starts_with("a message of 65537 bytes is longer than the 65536 that"), "{error}");
        assert_eq!(refused(b" 65537cmd"), "a message announces 65537 bytes: 1 to 65536 are allowed");
        assert_eq!(take_message(&mut b" 65536cmd".to_vec()), Ok(None));
        assert_eq!(take_message(&mut b"     1".to_vec()), Ok(None));
    }

    #[test]
    fn a_key_has_at_most_64_bytes() {
        let keyed = |size: usize| Message::new("x").with(&"k".repeat(size), 1);
        for size in [1, 63, 64] {
            let mut bytes = keyed(size).encode().expect("not too long");
            assert_eq!(take_message(&mut bytes), Ok(Some(keyed(size))));
        }
        for size in [0, 65] {
            let error = keyed(size).encode().expect_err("no key").to_string();
            assert!(error.ends_with(&format!("has {size} bytes: 1 to 64 are allowed")), "{error}");
        }
        let long = format!("{:>6}cmd=x;{}=1;", 6 + 68, "k".repeat(65));
        assert!(refused(long.as_bytes()).contains("has 65 bytes: 1 to 64"));
    }

    #[test]
    fn a_line_has_at_most_1024_bytes() {
        // A line of so many bytes, without its end.
        let sized = |size: usize| format!("cmd=x v={}", "y".repeat(size - 8)).into_bytes();
        for size in [1023, 1024] {
            assert_eq!(take_line(&mut sized(size)), Ok(None), "it may still end");
            let mut ended = [sized(size), b"\n".to_vec()].concat();
            let line = take_line(&mut ended).expect("not too long").expect("complete");
            assert_eq!((line.need("v").map(str::len), ended.len()), (Ok(size - 8), 0));
        }
        let error = take_line(&mut sized(1025)).expect_err("too long").to_string();
        assert!(error.ends_with("(1025 bytes) does not end within 1024 bytes"), "{error}");
        let error = take_line(&mut [sized(1025), b"\n".to_vec()].concat()).expect_err("too long").to_string();
        assert!(error.ends_with("(1025 bytes) is longer than 1024 bytes"), "{error}");
    }

    #[test]
    fn quoted_text_is_cut_after_80_bytes() {
        for size in [0, 79, 80] {
            assert_eq!(quote(&vec![b'q'; size]), format!("\"{}\"", "q".repeat(size)));
        }
        assert_eq!(quote(&[b'q'; 81]), format!("\"{}\"... (81 bytes)", "q".repeat(80)));
    }

    #[test]
    fn opening_lines_are_checked() {
        let mut inbox = b"cmd=init pmi_version=2 pmi_subversion=0\n  rest".to_vec();
        let line = take_line(&mut inbox).expect("well-formed").expect("complete");
        assert_eq!((line.command.as_str(), line.number("pmi_version")), ("init", Ok(2)));
        assert_eq!(inbox, b"  rest");
        assert_eq!(take_line(&mut inbox), Ok(None));
        for (line, wanted) in [
            (b"hello\n".as_slice(), "\"hello\" in the line \"hello\" has no '='"),
            (b"\n", "\"\" does not begin with a command"),
            (b"rc=0 cmd=x\n", "\"rc=0 cmd=x\" does not begin with a command"),
            (b"cmd=x ;=1\n", "the key \";\" has characters"),
            (b"cmd=x k=\xff\n", "\"\\xff\" is not text"),
        ] {
            let error = take_line(&mut line.to_vec()).expect_err(wanted).to_string();
            assert!(error.contains(wanted), "{error} should say {wanted}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            command in "[a-z-]{1,20}",
            pairs in proptest::collection::vec(("[a-zA-Z0-9_.-]{1,64}", "[ -~é]{0,300}"), 0..8),
            cut in 0usize..3000,
        ) {
            // A value that ends in ';' before another pair and an empty one after it are the same on the wire as
            // elsewhere: the doubled ones are told apart because no key begins with ';'.
            let message = Message { command, pairs };
            let bytes = message.encode().expect("within limits");
            let cut = cut.min(bytes.len() - 1);
            let mut inbox = bytes[..cut].to_vec();
            prop_assert_eq!(take_message(&mut inbox), Ok(None));
            inbox.extend_from_slice(&bytes[cut..]);
            prop_assert_eq!(take_message(&mut inbox), Ok(Some(message)));
            prop_assert!(inbox.is_empty());
        }

        #[test]
        fn anything_ends_in_a_message_an_error_or_patience(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut inbox = bytes.clone();
            while let Ok(Some(_)) = take_message(&mut inbox) {}
            let mut inbox = bytes;
            while let Ok(Some(_)) = take_line(&mut inbox) {}
        }

        #[test]
        fn any_payload_of_near_syntax_is_survived(payload in "[cmd=;k v]{0,40}") {
            if let Ok(message) = parse_payload(payload.as_bytes()) {
                prop_assert!(!message.command.is_empty());
            }
        }
    }
}
