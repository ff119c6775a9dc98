//! Text -> tokens with their places.

use super::error::{Error, Position};

/// A token and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) at: Position,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    /// A word: an intrinsic, a keyword.
    Word(String),
    /// `span.name`, `.name`: scope (empty for none) and name.
    Attribute(String, String),
    /// `span:name`, `trace:id`.
    Scoped(String, String),
    Str(String),
    Int(i64),
    Float(f64),
    /// Nanoseconds.
    Duration(i64),
    /// An operator or a bracket, as written.
    Symbol(&'static str),
    End,
}

impl TokenKind {
    /// For error texts.
    pub(super) fn describe(&self) -> String {
        match self {
            TokenKind::Word(word) => format!("`{word}`"),
            TokenKind::Attribute(scope, name) => format!("`{scope}.{name}`"),
            TokenKind::Scoped(scope, name) => format!("`{scope}:{name}`"),
            TokenKind::Str(text) => format!("{text:?}"),
            TokenKind::Int(number) | TokenKind::Duration(number) => format!("`{number}`"),
            TokenKind::Float(number) => format!("`{number}`"),
            TokenKind::Symbol(symbol) => format!("`{symbol}`"),
            TokenKind::End => "the end of the query".to_owned(),
        }
    }
}

/// Longest first, so that no operator hides a longer one.
const SYMBOLS: [&str; 43] = [
    "&>>", "&<<", "!>>", "!<<", "&&", "||", "=~", "!~", "!=", ">=", "<=", ">>", "<<", "&>", "&<", "&~", "!>", "!<", "{", "}", "(", ")",
    "=", ">", "<", "!", "+", "-", "*", "/", "%", "^", "|", ",", "~", "&", "[", "]", ";", "?", "@", "#", "$",
];

/// Scopes that are followed by a dot or a colon.
const SCOPES: [&str; 7] = ["span", "resource", "event", "link", "instrumentation", "parent", "trace"];

/// Every token of `text`, the last one [`TokenKind::End`].
pub(super) fn tokenize(text: &str) -> Result<Vec<Token>, Error> {
    let mut lexer = Lexer {
        rest: text,
        at: Position::START,
    };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_space();
        let at = lexer.at;
        let kind = lexer.token()?;
        let is_end = kind == TokenKind::End;
        tokens.push(Token { kind, at });
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    at: Position,
}

impl<'a> Lexer<'a> {
    fn token(&mut self) -> Result<TokenKind, Error> {
        let Some(first) = self.rest.chars().next() else {
            return Ok(TokenKind::End);
        };
        if matches!(first, '"' | '`') {
            return self.string().map(TokenKind::Str);
        }
        if first.is_ascii_digit() {
            return self.number();
        }
        if first == '.' {
            self.advance(1);
            return self.attribute(String::new());
        }
        if first.is_alphabetic() || first == '_' {
            return self.word();
        }
        match SYMBOLS.iter().find(|symbol| self.rest.starts_with(**symbol)) {
            Some(symbol) => {
                self.advance(symbol.len());
                Ok(TokenKind::Symbol(symbol))
            }
            None => Err(Error::new(self.at, format!("{first:?} is no part of the language"))),
        }
    }

    fn word(&mut self) -> Result<TokenKind, Error> {
        let word = self.take_while(|c| c.is_alphanumeric() || c == '_').to_owned();
        if !SCOPES.contains(&word.as_str()) {
            return Ok(TokenKind::Word(word));
        }
        if self.rest.starts_with('.') {
            self.advance(1);
            return self.attribute(word);
        }
        if self.rest.starts_with(':') {
            self.advance(1);
            let name = self.take_while(|c| c.is_alphanumeric() || c == '_').to_owned();
            return Ok(TokenKind::Scoped(word, name));
        }
        Ok(TokenKind::Word(word))
    }

    /// A name of bare and quoted parts: `http.status`, `"a b".c`.
    fn attribute(&mut self, scope: String) -> Result<TokenKind, Error> {
        let mut name = String::new();
        loop {
            if self.rest.starts_with('"') {
                name.push_str(&self.string()?);
                continue;
            }
            let part = self.take_while(is_attribute_char);
            if part.is_empty() {
                break;
            }
            name.push_str(part);
        }
        match name.is_empty() {
            true => Err(Error::expecting(
                self.at,
                format!("`{scope}.` has no name"),
                &["the name of an attribute"],
            )),
            false => Ok(TokenKind::Attribute(scope, name)),
        }
    }

    fn string(&mut self) -> Result<String, Error> {
        let start = self.at;
        let mut chars = self.rest.char_indices();
        let quote = chars.next().map_or('"', |(_, quote)| quote);
        let mut text = String::new();
        while let Some((index, c)) = chars.next() {
            match c {
                _ if c == quote => {
                    self.advance(index + c.len_utf8());
                    return Ok(text);
                }
                '\\' if quote == '"' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, escaped @ ('\\' | '"'))) => text.push(escaped),
                    // Regular expressions are written with single backslashes.
                    Some((_, other)) => text.extend(['\\', other]),
                    None => break,
                },
                _ => text.push(c),
            }
        }
        Err(Error::expecting(start, "text has no end", &["a closing quote"]))
    }

    fn number(&mut self) -> Result<TokenKind, Error> {
        let at = self.at;
        let digits = self.decimal();
        if !self.rest.starts_with(char::is_alphabetic) {
            return match (digits.parse::<i64>(), digits.parse::<f64>()) {
                (Ok(number), _) => Ok(TokenKind::Int(number)),
                (_, Ok(number)) if digits.contains(['.', 'e', 'E']) => Ok(TokenKind::Float(number)),
                _ => Err(Error::new(at, format!("{digits} does not fit a number of 64 bits"))),
            };
        }
        let mut nanos = 0.0;
        let mut digits = digits;
        loop {
            nanos += self.duration_part(at, digits)?;
            if !self.rest.starts_with(|c: char| c.is_ascii_digit()) {
                break;
            }
            digits = self.decimal();
        }
        match nanos < i64::MAX as f64 {
            true => Ok(TokenKind::Duration(nanos.round() as i64)),
            false => Err(Error::new(at, "duration is longer than 292 years")),
        }
    }

    /// Digits with an optional fraction and exponent. An `e` that no digit follows is left alone.
    fn decimal(&mut self) -> &'a str {
        let bytes = self.rest.as_bytes();
        let digits = |from: usize| from + bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
        let mut end = digits(0);
        if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
            end = digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let exponent_end = digits((end + 1 + sign).min(bytes.len()));
            end = if exponent_end > end + 1 + sign { exponent_end } else { end };
        }
        let text = &self.rest[..end];
        self.advance(end);
        text
    }

    fn duration_part(&mut self, at: Position, digits: &str) -> Result<f64, Error> {
        const UNITS: [(&str, f64); 8] = [
            ("ns", 1.0),
            ("us", 1e3),
            ("\u{b5}s", 1e3),
            ("\u{3bc}s", 1e3),
            ("ms", 1e6),
            ("s", 1e9),
            ("m", 60e9),
            ("h", 3600e9),
        ];
        let unit_at = self.at;
        let unit = self.take_while(char::is_alphabetic);
        let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
        let factor =
            factor.ok_or_else(|| Error::expecting(unit_at, format!("`{unit}` is no unit of time"), &["ns", "us", "ms", "s", "m", "h"]))?;
        let number: f64 = digits.parse().map_err(|_| Error::new(at, format!("{digits} is no number")))?;
        Ok(number * factor)
    }

    fn skip_space(&mut self) {
        self.take_while(char::is_whitespace);
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let length = self.rest.find(|c| !accept(c)).unwrap_or(self.rest.len());
        let text = &self.rest[..length];
        self.advance(length);
        text
    }

    /// Moves over `bytes` bytes, which end between characters.
    fn advance(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes);
        for c in passed.chars() {
            if c == '\n' {
                self.at.line += 1;
                self.at.column = 1;
            } else {
                self.at.column += 1;
            }
        }
        self.rest = rest;
    }
}

/// As Tempo: nearly everything is part of a name, `-` and `/` included.
fn is_attribute_char(c: char) -> bool {
    !c.is_whitespace() && !"{}()=~!<>&|^,\"".contains(c)
}
