//! Doc comments of generated items: the IDL's words, or a sentence where it has none.

/// The IDL's `docs`, or `fallback`, as `///` lines.
pub(super) fn comment(docs: &[String], fallback: &str) -> String {
    lines(docs, fallback).iter().map(|line| format!("/// {line}").trim_end().to_owned() + "\n").collect()
}

/// The IDL's `docs`, or `fallback`, on one line.
pub(super) fn sentence(docs: &[String], fallback: &str) -> String {
    lines(docs, fallback).join(" ").trim().to_owned()
}

fn lines(docs: &[String], fallback: &str) -> Vec<String> {
    let lines: Vec<_> = docs.iter().flat_map(|doc| doc.split('\n')).map(|line| unlink(line.trim())).collect();
    if lines.iter().all(String::is_empty) { vec![fallback.to_owned()] } else { lines }
}

/// A fragment as a sentence of documentation. A name at its start keeps its spelling.
pub(super) fn capitalise(fragment: &str) -> String {
    let sentence = format!("{}.", fragment.trim_end_matches('.'));
    let word = sentence.split([' ', '.']).next().unwrap_or_default();
    if !word.chars().all(char::is_alphabetic) {
        return sentence;
    }
    let mut characters = sentence.chars();
    let first = characters.next().map(char::to_uppercase).into_iter().flatten();
    first.chain(characters).collect()
}

/// Turns a link to a Rust item into plain code: what the program's crate links to, the SDK does not have.
fn unlink(line: &str) -> String {
    line.replace("[`", "`").replace("`]", "`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_items_of_the_program_become_code() {
        assert_eq!(comment(&["At most [`MAX`] bytes.".to_owned()], ""), "/// At most `MAX` bytes.\n");
    }

    #[test]
    fn paragraphs_stay_apart() {
        let docs = ["One.", "", "Two."].map(str::to_owned);
        assert_eq!(comment(&docs, ""), "/// One.\n///\n/// Two.\n");
    }

    #[test]
    fn an_error_message_becomes_a_sentence() {
        assert_eq!(capitalise("the buffer is sealed"), "The buffer is sealed.");
        assert_eq!(capitalise("begin_delegate is missing"), "begin_delegate is missing.");
    }

    #[test]
    fn an_item_without_docs_gets_the_fallback() {
        assert_eq!(comment(&[], "The `x`."), "/// The `x`.\n");
    }
}
