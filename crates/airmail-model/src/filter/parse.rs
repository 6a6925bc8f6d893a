//! From text to tree.
//!
//! By recursive descent, one function for each rule of the grammar. Each parenthesis and each `not`
//! goes one deeper, and [`DEPTH_MAX`] of them is the deepest that it goes.

use super::error::{Bound, FilterError};
use super::expression::{Check, Comparison, Expression, Test};
use super::lex::{Keyword, Lexer, Token, Word};
use super::{BYTES_MAX, DEPTH_MAX, TESTS_MAX};
use crate::batch::AttributeValue;

const OPERATOR: &str =
    "`=`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `not in`, `between` or `starts with`";

/// The tree of a text. Counts everything but conjunctions and the bytes of the text that is shown.
pub(super) fn parse(text: &str) -> Result<Expression, FilterError> {
    if text.len() > BYTES_MAX {
        return Err(Bound::Bytes.exceeded_by(text.len()));
    }
    let mut lexer = Lexer::new(text);
    let next = lexer.next()?;
    let mut parser = Parser {
        lexer,
        next,
        tests: 0,
        depth: 0,
    };
    let expression = parser.alternatives()?;
    match parser.next.token {
        Token::End => Ok(expression),
        _ => Err(parser.next.unexpected("`and`, `or` or the end")),
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The word that was not taken yet.
    next: Word<'a>,
    tests: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    /// filter = and { "or" and }
    fn alternatives(&mut self) -> Result<Expression, FilterError> {
        let mut parts = Vec::new();
        loop {
            match self.all_of()? {
                Expression::Or(inner) => parts.extend(inner),
                part => parts.push(part),
            }
            if !self.take_keyword(Keyword::Or)? {
                return Ok(one_or(parts, Expression::Or));
            }
        }
    }

    /// and = unary { "and" unary }
    fn all_of(&mut self) -> Result<Expression, FilterError> {
        let mut parts = Vec::new();
        loop {
            match self.unary()? {
                Expression::And(inner) => parts.extend(inner),
                part => parts.push(part),
            }
            if !self.take_keyword(Keyword::And)? {
                return Ok(one_or(parts, Expression::And));
            }
        }
    }

    /// unary = "not" unary | "(" filter ")" | test
    fn unary(&mut self) -> Result<Expression, FilterError> {
        if self.take_keyword(Keyword::Not)? {
            let part = self.deeper(Parser::unary)?;
            return Ok(Expression::Not(Box::new(part)));
        }
        if self.next.token == Token::Open {
            self.take()?;
            let part = self.deeper(Parser::alternatives)?;
            return match self.next.token {
                Token::Close => self.take().map(|_| part),
                _ => Err(self.next.unexpected("`and`, `or` or `)`")),
            };
        }
        self.test().map(Expression::Test)
    }

    fn deeper(
        &mut self,
        rule: fn(&mut Parser<'a>) -> Result<Expression, FilterError>,
    ) -> Result<Expression, FilterError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Bound::Depth.exceeded_by(self.depth));
        }
        let part = rule(self)?;
        self.depth -= 1;
        Ok(part)
    }

    fn test(&mut self) -> Result<Test, FilterError> {
        if self.take_keyword(Keyword::Has)? {
            self.count()?;
            let name = self.name("a name, in double quotes if it is a word of the language")?;
            let check = Check::Has;
            return Ok(Test { name, check });
        }
        let name = self.name("a name, `has`, `not` or `(`")?;
        let check = self.check()?;
        Ok(Test { name, check })
    }

    /// The condition that stands behind a name.
    fn check(&mut self) -> Result<Check, FilterError> {
        let is_operator = |token: &Token| {
            matches!(
                token,
                Token::Comparison(_)
                    | Token::Keyword(
                        Keyword::In | Keyword::Not | Keyword::Between | Keyword::Starts
                    )
            )
        };
        let word = self.peeked(is_operator, OPERATOR)?;
        match word.token {
            Token::Comparison(comparison) => self.comparison(comparison),
            Token::Keyword(Keyword::In) => self.list().map(Check::In),
            Token::Keyword(Keyword::Not) => {
                if !self.take_keyword(Keyword::In)? {
                    return Err(self.next.unexpected("`in`"));
                }
                self.list().map(Check::NotIn)
            }
            Token::Keyword(Keyword::Between) => {
                self.count()?;
                let low = self.value(Kind::is_ordered, ORDERED)?;
                if !self.take_keyword(Keyword::And)? {
                    return Err(self.next.unexpected("`and`"));
                }
                let kind = Kind::of(&low);
                let high = self.value(|other| other == kind, kind.name())?;
                Ok(Check::Between(low, high))
            }
            Token::Keyword(Keyword::Starts) => {
                self.count()?;
                if !self.take_keyword(Keyword::With)? {
                    return Err(self.next.unexpected("`with`"));
                }
                match self.value(|kind| kind == Kind::Text, TEXT)? {
                    AttributeValue::String(text) => Ok(Check::StartsWith(text)),
                    // Never: the value's kind was asked.
                    _ => Err(word.unexpected(TEXT)),
                }
            }
            _ => Err(word.unexpected(OPERATOR)),
        }
    }

    fn comparison(&mut self, comparison: Comparison) -> Result<Check, FilterError> {
        self.count()?;
        let value = match comparison {
            Comparison::Equal | Comparison::Unequal => self.value(|_| true, ANY)?,
            _ => self.value(Kind::is_ordered, ORDERED)?,
        };
        Ok(Check::Compare(comparison, value))
    }

    /// "(" value { "," value } ")", all of one kind
    fn list(&mut self) -> Result<Vec<AttributeValue>, FilterError> {
        if self.next.token != Token::Open {
            return Err(self.next.unexpected("`(`"));
        }
        self.take()?;
        self.count()?;
        let mut values = vec![self.value(|_| true, ANY)?];
        let kind = Kind::of(&values[0]);
        loop {
            let goes_on = |token: &Token| matches!(token, Token::Comma | Token::Close);
            let word = self.peeked(goes_on, "`,` or `)`")?;
            if word.token == Token::Close {
                return Ok(values);
            }
            self.count()?;
            values.push(self.value(|other| other == kind, kind.name())?);
        }
    }

    /// One test more.
    fn count(&mut self) -> Result<(), FilterError> {
        self.tests += 1;
        if self.tests > TESTS_MAX {
            return Err(Bound::Tests.exceeded_by(self.tests));
        }
        Ok(())
    }

    fn name(&mut self, expected: &str) -> Result<String, FilterError> {
        let word = self.peeked(|token| matches!(token, Token::Name(_)), expected)?;
        match word.token {
            Token::Name(name) => Ok(name),
            _ => Err(word.unexpected(expected)),
        }
    }

    fn value(
        &mut self,
        fits: impl Fn(Kind) -> bool,
        expected: &str,
    ) -> Result<AttributeValue, FilterError> {
        let is_value = |token: &Token| match token {
            Token::Value(value) => fits(Kind::of(value)),
            _ => false,
        };
        let word = self.peeked(is_value, expected)?;
        match word.token {
            Token::Value(value) => Ok(value),
            _ => Err(word.unexpected(expected)),
        }
    }

    /// Takes the next word if it fits. What does not is left, so that no error of the word behind it comes first.
    fn peeked(
        &mut self,
        fits: impl Fn(&Token) -> bool,
        expected: &str,
    ) -> Result<Word<'a>, FilterError> {
        if fits(&self.next.token) {
            self.take()
        } else {
            Err(self.next.unexpected(expected))
        }
    }

    fn take_keyword(&mut self, keyword: Keyword) -> Result<bool, FilterError> {
        let is_there = self.next.token == Token::Keyword(keyword);
        if is_there {
            self.take()?;
        }
        Ok(is_there)
    }

    fn take(&mut self) -> Result<Word<'a>, FilterError> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.next, next))
    }
}

const ANY: &str = "a value: a text in single quotes, a number, `true` or `false`";
const ORDERED: &str = "a number or a text";
const TEXT: &str = "a text in single quotes";

/// The type of a value, as tests see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Bool,
}

impl Kind {
    fn of(value: &AttributeValue) -> Kind {
        match value {
            AttributeValue::String(_) => Kind::Text,
            AttributeValue::Integer(_) | AttributeValue::Float(_) => Kind::Number,
            AttributeValue::Bool(_) => Kind::Bool,
        }
    }

    fn is_ordered(self) -> bool {
        self != Kind::Bool
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Text => "a text, as the first value",
            Kind::Number => "a number, as the first value",
            Kind::Bool => "`true` or `false`, as the first value",
        }
    }
}

fn one_or(mut parts: Vec<Expression>, of: fn(Vec<Expression>) -> Expression) -> Expression {
    match (parts.pop(), parts.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            parts.extend(last);
            of(parts)
        }
    }
}
