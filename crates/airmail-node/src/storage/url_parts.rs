//! The parts of a URL of a storage that others have, at one of several addresses:
//! `SCHEME://HOST:PORT[,HOST:PORT…][?NAME=VALUE[&NAME=VALUE…]]`.

use std::fmt;

/// See the module's documentation.
pub(super) struct UrlParts<'u> {
    /// `HOST:PORT` each, 1 or more.
    pub(super) addresses: Vec<String>,
    /// Names and values, in order.
    pub(super) parameters: Vec<(&'u str, &'u str)>,
}

impl<'u> UrlParts<'u> {
    /// Reads what stands behind `SCHEME:`. `most` addresses may be named, which are of `what`.
    ///
    /// # Errors
    /// What it should have been: `expected`, or how many addresses.
    pub(super) fn read(
        rest: &'u str,
        expected: &str,
        (most, what): (usize, &str),
    ) -> Result<UrlParts<'u>, String> {
        let rest = rest.strip_prefix("//").ok_or(expected)?;
        let (addresses, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let addresses = addresses.split(',').map(|one| one.trim().to_owned());
        let addresses: Vec<String> = addresses.collect();
        let is_address = |address: &String| {
            let split = address.rsplit_once(':');
            split.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        };
        if !addresses.iter().all(is_address) {
            return Err(expected.to_owned());
        }
        if addresses.len() > most {
            return Err(format!("at most {most} {what}"));
        }
        let parameters = parameters.split('&').filter(|one| !one.is_empty());
        let parameters = parameters.map(|one| one.split_once('=').ok_or(expected));
        Ok(UrlParts {
            addresses,
            parameters: parameters.collect::<Result<_, _>>()?,
        })
    }
}

/// Writes a URL of these addresses and parameters.
pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    scheme: &str,
    addresses: &[String],
    parameters: impl IntoIterator<Item = String>,
) -> fmt::Result {
    write!(f, "{scheme}://{}", addresses.join(","))?;
    for (place, parameter) in parameters.into_iter().enumerate() {
        let mark = if place == 0 { '?' } else { '&' };
        write!(f, "{mark}{parameter}")?;
    }
    Ok(())
}
