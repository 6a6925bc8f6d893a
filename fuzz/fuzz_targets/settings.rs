//! Text that people type: a node's settings, sizes, lengths of time, places in a topic.

#![no_main]

use airmail::commands::instant::Instant;
use airmail_fuzz::fuzz_target;
use airmail_model::quantity::{ByteSize, Span};
use airmail_node::config::Config;
use airmail_node::config::settings::SETTINGS;

fuzz_target!(|data: &[u8]| {
    let Some((&which, rest)) = data.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    if let Ok(size) = text.parse::<ByteSize>() {
        assert_eq!(size.to_string().parse(), Ok(size));
    }
    if let Ok(span) = text.parse::<Span>() {
        assert_eq!(span.to_string().parse(), Ok(span));
    }
    if let Ok(instant) = text.parse::<Instant>() {
        let _ = instant.start();
    }
    let mut config = Config::default();
    let setting = &SETTINGS[usize::from(which) % SETTINGS.len()];
    if config.set(&setting.name(), text).is_ok() {
        let _ = config.validate();
        // What was taken is shown so that it is taken again.
        let shown = (setting.get)(&config);
        let mut again = Config::default();
        assert_eq!(again.set(&setting.name(), &shown), Ok(()));
        assert_eq!(again, config);
    }
});
