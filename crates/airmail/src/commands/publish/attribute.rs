//! Attributes as they are typed: `K=V` is text, `K:=V` a number, true or false.
//!
//! A number is taken exactly or refused: none is rounded or becomes another kind in silence.

use airmail_client::AttributeValue;

/// Reads one.
///
/// # Errors
/// The fault in the value, and a correct form.
pub(super) fn attribute(text: &str) -> Result<(String, AttributeValue), String> {
    let (name, value) = text.split_once('=').ok_or("expected K=V or K:=V")?;
    let Some(name) = name.strip_suffix(':') else {
        return Ok((name.to_owned(), value.into()));
    };
    let wrong = |what: String| format!("{name}: {value}: {what}");
    let typed = match (value, is_whole(value)) {
        ("true", _) => true.into(),
        ("false", _) => false.into(),
        (_, true) => integer(value).map_err(wrong)?.into(),
        (_, false) => float(value).map_err(wrong)?.into(),
    };
    Ok((name.to_owned(), typed))
}

/// Whether it is written as a whole number, of whatever size.
fn is_whole(value: &str) -> bool {
    let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn integer(value: &str) -> Result<i64, String> {
    let beyond = |_| {
        format!(
            "a whole number is from {} to {}; with a decimal point it is stored as a float, and as text with = \
             alone",
            i64::MIN,
            i64::MAX
        )
    };
    value.parse().map_err(beyond)
}

fn float(value: &str) -> Result<f64, String> {
    let number: f64 = value
        .parse()
        .map_err(|_| "expected a number, true or false after :=".to_owned())?;
    let mantissa = value.split(['e', 'E']).next().unwrap_or_default();
    let is_nothing = number == 0.0 && mantissa.contains(|digit| ('1'..='9').contains(&digit));
    if !number.is_finite() || is_nothing {
        return Err(format!(
            "a number is finite, from {:e} to {:e}, and not smaller than {:e} unless it is 0",
            f64::MIN,
            f64::MAX,
            // The smallest that there is.
            f64::from_bits(1)
        ));
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_text_unless_it_says_otherwise() {
        let read = |text: &str| attribute(text).map(|(_, value)| value);
        assert_eq!(attribute("a=1=2").unwrap(), ("a".into(), "1=2".into()));
        assert_eq!(read("a:=-3"), Ok(AttributeValue::Integer(-3)));
        assert_eq!(read("a:=2.5"), Ok(AttributeValue::Float(2.5)));
        assert_eq!(read("a:=true"), Ok(AttributeValue::Bool(true)));
        assert!(read("a:=yes").is_err() && read("a").is_err());
    }

    #[test]
    fn a_number_that_cannot_be_kept_as_it_is_is_refused_with_field_value_and_limit() {
        let most = "9223372036854775807";
        assert_eq!(
            attribute(&format!("i:={most}")).unwrap().1,
            AttributeValue::Integer(i64::MAX)
        );
        for (value, limit) in [
            ("9223372036854775808", most),
            ("-9223372036854775809", "-9223372036854775808"),
            ("100000000000000000000000", most),
            ("1e400", "1.7976931348623157e308"),
            ("-1e400", "-1.7976931348623157e308"),
            ("1e-400", "5e-324"),
            ("NaN", "finite"),
            ("inf", "finite"),
            ("-infinity", "finite"),
        ] {
            let told = attribute(&format!("i:={value}")).unwrap_err();
            assert!(told.starts_with(&format!("i: {value}: ")), "{told}");
            assert!(told.contains(limit), "{told}");
        }
        for zero in ["0.0", "0e7", "-0.0"] {
            let read = attribute(&format!("i:={zero}")).unwrap().1;
            assert!(matches!(read, AttributeValue::Float(zero) if zero == 0.0));
        }
    }
}
