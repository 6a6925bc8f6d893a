//! The words of a filter's text, each with its place.

use super::error::{FilterError, shown};
use super::expression::Comparison;
use crate::batch::{ATTRIBUTE_NAME_BYTES_MAX, AttributeValue};

/// A word of the language itself. As a name it has to stand in quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    And,
    Or,
    Not,
    In,
    Between,
    Starts,
    With,
    Has,
}

const KEYWORDS: [(&str, Keyword); 8] = [
    ("and", Keyword::And),
    ("or", Keyword::Or),
    ("not", Keyword::Not),
    ("in", Keyword::In),
    ("between", Keyword::Between),
    ("starts", Keyword::Starts),
    ("with", Keyword::With),
    ("has", Keyword::Has),
];
const BOOLS: [(&str, bool); 2] = [("true", true), ("false", false)];

/// The kind of a word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Keyword(Keyword),
    Name(String),
    Value(AttributeValue),
    Comparison(Comparison),
    Open,
    Close,
    Comma,
    End,
}

/// A place in the text: line and column, both from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    line: u32,
    column: u32,
}

impl Place {
    /// The error of what was found here.
    pub(super) fn expected(self, found: String, expected: &str) -> FilterError {
        FilterError::Invalid {
            line: self.line,
            column: self.column,
            found,
            expected: expected.to_owned(),
        }
    }
}

/// A word of the text.
#[derive(Clone, Debug)]
pub(super) struct Word<'a> {
    pub(super) token: Token,
    pub(super) place: Place,
    text: &'a str,
}

impl Word<'_> {
    /// The error of a word that cannot stand where it does.
    pub(super) fn unexpected(&self, expected: &str) -> FilterError {
        let found = match self.token {
            Token::End => "the end".to_owned(),
            _ => shown(self.text),
        };
        self.place.expected(found, expected)
    }
}

/// Whether a name may stand without quotes, unless it is a keyword.
pub(super) fn is_bare_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_name_character)
}

/// Whether a name is a word of the language, in any case.
pub(super) fn is_keyword(name: &str) -> bool {
    let mut words = KEYWORDS.iter().map(|(word, _)| word);
    let mut bools = BOOLS.iter().map(|(word, _)| word);
    words.any(|word| word.eq_ignore_ascii_case(name))
        || bools.any(|word| word.eq_ignore_ascii_case(name))
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}

/// Bytes that a text begins with and that may be a name's.
fn name_bytes(text: &str) -> usize {
    text.find(|c| !is_name_character(c)).unwrap_or(text.len())
}

/// Cuts a text into words.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    rest: &'a str,
    place: Place,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        Lexer {
            rest: text,
            place: Place { line: 1, column: 1 },
        }
    }

    /// The next word; `End` at the end, and again whenever it is asked.
    pub(super) fn next(&mut self) -> Result<Word<'a>, FilterError> {
        let blank = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
        let blanks = self.rest.len() - self.rest.trim_start_matches(blank).len();
        self.take(blanks);
        let place = self.place;
        let Some(first) = self.rest.chars().next() else {
            return Ok(self.word(place, Token::End, 0));
        };
        match first {
            '(' => Ok(self.word(place, Token::Open, 1)),
            ')' => Ok(self.word(place, Token::Close, 1)),
            ',' => Ok(self.word(place, Token::Comma, 1)),
            '=' | '!' | '<' | '>' => self.comparison(place),
            '\'' => {
                let (text, bytes) = self.quoted('\'', "the text's end, '")?;
                Ok(self.word(place, Token::Value(AttributeValue::String(text)), bytes))
            }
            '"' => {
                let (name, bytes) = self.quoted('"', "the name's end, \"")?;
                self.name(place, name, bytes)
            }
            '-' | '0'..='9' => self.number(place),
            letter if letter.is_ascii_alphabetic() => self.letters(place),
            other => Err(place.expected(
                shown(other.encode_utf8(&mut [0; 4])),
                "a name, a value, or a sign of the language",
            )),
        }
    }

    /// Takes bytes off; the place moves over them.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        for letter in taken.chars() {
            if letter == '\n' {
                self.place.line += 1;
                self.place.column = 1;
            } else {
                self.place.column += 1;
            }
        }
        self.rest = rest;
        taken
    }

    fn word(&mut self, place: Place, token: Token, bytes: usize) -> Word<'a> {
        let text = self.take(bytes);
        Word { token, place, text }
    }

    fn comparison(&mut self, place: Place) -> Result<Word<'a>, FilterError> {
        const SIGNS: [Comparison; 6] = [
            Comparison::LessOrEqual,
            Comparison::GreaterOrEqual,
            Comparison::Unequal,
            Comparison::Equal,
            Comparison::Less,
            Comparison::Greater,
        ];
        let found = SIGNS.iter().find(|sign| self.rest.starts_with(sign.sign()));
        match found {
            Some(sign) => Ok(self.word(place, Token::Comparison(*sign), sign.sign().len())),
            None => Err(place.expected("`!`".to_owned(), "`!=`")),
        }
    }

    /// Text in quotes at the beginning, with doubled quotes made single; and its bytes, with the quotes.
    fn quoted(&self, quote: char, expected: &str) -> Result<(String, usize), FilterError> {
        let mut text = String::new();
        let mut letters = self.rest.char_indices().skip(1).peekable();
        while let Some((at, letter)) = letters.next() {
            if letter != quote {
                text.push(letter);
            } else if letters.next_if(|(_, next)| *next == quote).is_some() {
                text.push(quote);
            } else {
                return Ok((text, at + 1));
            }
        }
        Err(self.place.expected(shown(self.rest), expected))
    }

    fn letters(&mut self, place: Place) -> Result<Word<'a>, FilterError> {
        let bytes = name_bytes(self.rest);
        let letters = &self.rest[..bytes];
        let keyword = KEYWORDS
            .iter()
            .find(|(word, _)| word.eq_ignore_ascii_case(letters));
        let truth = BOOLS
            .iter()
            .find(|(word, _)| word.eq_ignore_ascii_case(letters));
        match (keyword, truth) {
            (Some((_, keyword)), _) => Ok(self.word(place, Token::Keyword(*keyword), bytes)),
            (_, Some((_, bit))) => {
                Ok(self.word(place, Token::Value(AttributeValue::Bool(*bit)), bytes))
            }
            _ => self.name(place, letters.to_owned(), bytes),
        }
    }

    fn name(&mut self, place: Place, name: String, bytes: usize) -> Result<Word<'a>, FilterError> {
        let length = name.len();
        let word = self.word(place, Token::Name(name), bytes);
        if (1..=ATTRIBUTE_NAME_BYTES_MAX).contains(&length) {
            Ok(word)
        } else {
            Err(place.expected(
                format!("a name of {length} bytes"),
                "a name of 1 to 255 bytes",
            ))
        }
    }

    fn number(&mut self, place: Place) -> Result<Word<'a>, FilterError> {
        let digits_at = |at: usize| {
            let digits = self.rest[at..].find(|c: char| !c.is_ascii_digit());
            digits.map_or(self.rest.len(), |digits| at + digits)
        };
        let sign = usize::from(self.rest.starts_with('-'));
        let mut end = digits_at(sign);
        let mut is_float = false;
        let mut is_whole = end > sign;
        if self.rest[end..].starts_with('.') {
            let fraction = end + 1;
            end = digits_at(fraction);
            (is_float, is_whole) = (true, is_whole && end > fraction);
        }
        if self.rest[end..].starts_with(['e', 'E']) {
            let signed = self.rest[end + 1..].starts_with(['+', '-']);
            let exponent = end + 1 + usize::from(signed);
            end = digits_at(exponent);
            (is_float, is_whole) = (true, is_whole && end > exponent);
        }
        let run = end + name_bytes(&self.rest[end..]);
        let text = &self.rest[..end];
        if !is_whole || run > end {
            let found = shown(&self.rest[..run.max(1)]);
            return Err(place.expected(found, "a number, as -7, 2.5 or 1e9, and a blank behind it"));
        }
        let value = if is_float {
            let number: Option<f64> = text.parse().ok();
            let finite = number.filter(|number| number.is_finite());
            finite.map(AttributeValue::Float)
        } else {
            text.parse().ok().map(AttributeValue::Integer)
        };
        match value {
            Some(value) => Ok(self.word(place, Token::Value(value), end)),
            None => Err(place.expected(
                shown(text),
                "an integer of 64 bits, or a float that is finite",
            )),
        }
    }
}
