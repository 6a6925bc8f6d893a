//! Filters and patterns as users write them: any text is one, or is refused; what is shown parses to the same.

#![no_main]

use airmail_fuzz::fuzz_target;
use airmail_model::filter::{CONJUNCTIONS_MAX, Filter, FilterError};
use airmail_model::selector::Glob;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match Filter::parse(text) {
        Ok(filter) => {
            let expression = filter.expression();
            let conjunctions = expression.conjunctions().expect("they were counted").len();
            assert!((1..=CONJUNCTIONS_MAX).contains(&conjunctions));
            assert_eq!(Filter::parse(&filter.to_string()).as_ref(), Ok(&filter));
        }
        Err(FilterError::Invalid { line, column, .. }) => assert!(line > 0 && column > 0),
        Err(FilterError::TooComplex { bound, found }) => assert!(found > bound.limit()),
    }
    if let Some((pattern, name)) = text.split_once('\n')
        && let Ok(glob) = Glob::parse(pattern)
        && glob.matches(name)
    {
        assert!(name.starts_with(glob.literal_prefix()));
    }
});
