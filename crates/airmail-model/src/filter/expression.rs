//! A filter as a tree, and its text.
//!
//! The text has one form: keywords in lower case, one blank between words, parentheses only where they
//! are needed, names in quotes only where they need them. An `and` within an `and` is one `and`, and so
//! is an `or` within an `or`: the parser makes no other, so the text parses to the same tree.

use super::lex::{is_bare_name, is_keyword};
use crate::batch::AttributeValue;
use std::fmt::{self, Write as _};

/// A filter, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// True where all are: two at least, none of them an `And`.
    And(Vec<Expression>),
    /// True where one is: two at least, none of them an `Or`.
    Or(Vec<Expression>),
    /// True where it is not.
    Not(Box<Expression>),
    /// A test of one attribute.
    Test(Test),
}

/// A test of one attribute. It is false of a record that has no attribute of this name, or one of another type:
/// text, number and boolean are the types.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// The attribute's name, 1 to 255 bytes.
    pub name: String,
    /// The condition on its value.
    pub check: Check,
}

/// A condition on an attribute's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Check {
    /// In this relation to the value. Booleans are equal or not, and have no order.
    Compare(Comparison, AttributeValue),
    /// Not below the first, which is a text or a number, nor above the second, of the same type.
    Between(AttributeValue, AttributeValue),
    /// One of these, which have one type.
    In(Vec<AttributeValue>),
    /// A value of the type of these, and none of them.
    NotIn(Vec<AttributeValue>),
    /// A text that begins so.
    StartsWith(String),
    /// There, with whatever value.
    Has,
}

/// A relation between two values. Integers and floats are compared by value, exactly; texts by their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// The sign in a filter's text.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Comparison::Equal => "=",
            Comparison::Unequal => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expression::Or(parts) => joined(parts, " or ", f, |part, f| write!(f, "{part}")),
            Expression::And(parts) => joined(parts, " and ", f, |part, f| match part {
                Expression::Or(_) => write!(f, "({part})"),
                _ => write!(f, "{part}"),
            }),
            Expression::Not(part) => match **part {
                Expression::And(_) | Expression::Or(_) => write!(f, "not ({part})"),
                _ => write!(f, "not {part}"),
            },
            Expression::Test(test) => write!(f, "{test}"),
        }
    }
}

fn joined<T>(
    parts: &[T],
    between: &str,
    f: &mut fmt::Formatter<'_>,
    show: impl Fn(&T, &mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            f.write_str(between)?;
        }
        show(part, f)?;
    }
    Ok(())
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.check {
            Check::Has => {
                f.write_str("has ")?;
                show_name(&self.name, f)
            }
            check => {
                show_name(&self.name, f)?;
                f.write_char(' ')?;
                show_check(check, f)
            }
        }
    }
}

fn show_check(check: &Check, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let list = |values: &[AttributeValue], f: &mut fmt::Formatter<'_>| {
        f.write_char('(')?;
        joined(values, ", ", f, show_value)?;
        f.write_char(')')
    };
    match check {
        Check::Compare(comparison, value) => {
            write!(f, "{} ", comparison.sign())?;
            show_value(value, f)
        }
        Check::Between(low, high) => {
            f.write_str("between ")?;
            show_value(low, f)?;
            f.write_str(" and ")?;
            show_value(high, f)
        }
        Check::In(values) => {
            f.write_str("in ")?;
            list(values, f)
        }
        Check::NotIn(values) => {
            f.write_str("not in ")?;
            list(values, f)
        }
        Check::StartsWith(text) => {
            f.write_str("starts with ")?;
            quoted(text, '\'', f)
        }
        Check::Has => f.write_str("has"),
    }
}

fn show_name(name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if is_bare_name(name) && !is_keyword(name) {
        f.write_str(name)
    } else {
        quoted(name, '"', f)
    }
}

fn show_value(value: &AttributeValue, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match value {
        AttributeValue::String(text) => quoted(text, '\'', f),
        AttributeValue::Integer(number) => write!(f, "{number}"),
        // With a point or an exponent always, and as many digits as tell it from its neighbours.
        AttributeValue::Float(number) => write!(f, "{number:?}"),
        AttributeValue::Bool(bit) => write!(f, "{bit}"),
    }
}

/// Text in quotes, with each quote in it doubled.
fn quoted(text: &str, quote: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char(quote)?;
    for letter in text.chars() {
        if letter == quote {
            f.write_char(quote)?;
        }
        f.write_char(letter)?;
    }
    f.write_char(quote)
}
