//! Names as Rust spells them.

/// The keywords that can be names in an IDL and need `r#` in Rust.
const KEYWORDS: [&str; 37] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else",
    "enum", "extern", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match",
    "mod", "move", "mut", "override", "pub", "ref", "return", "static", "struct", "trait", "type", "where",
];

/// `snake_case` from either case, as IDLs of different tools use both.
pub(super) fn snake(name: &str) -> String {
    let mut out = String::new();
    for character in name.chars() {
        if character.is_uppercase() && !out.is_empty() && !out.ends_with('_') {
            out.push('_');
        }
        out.extend(character.to_lowercase());
    }
    out
}

/// `PascalCase` from either case.
pub(super) fn pascal(name: &str) -> String {
    let words = snake(name);
    words.split('_').map(capitalised).collect()
}

/// `snake_case`, usable where Rust wants an identifier.
pub(super) fn identifier(name: &str) -> String {
    let name = snake(name);
    if KEYWORDS.contains(&name.as_str()) { format!("r#{name}") } else { name }
}

fn capitalised(word: &str) -> String {
    let mut characters = word.chars();
    let first = characters.next().map(char::to_uppercase).into_iter().flatten();
    first.chain(characters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_convert_between_cases() {
        for (name, snake_case, pascal_case) in [
            ("set_authority", "set_authority", "SetAuthority"),
            ("CommitPatch", "commit_patch", "CommitPatch"),
            ("close", "close", "Close"),
        ] {
            assert_eq!(snake(name), snake_case);
            assert_eq!(pascal(name), pascal_case);
        }
    }

    #[test]
    fn keywords_become_raw_identifiers() {
        assert_eq!(identifier("type"), "r#type");
        assert_eq!(identifier("kind"), "kind");
    }
}
