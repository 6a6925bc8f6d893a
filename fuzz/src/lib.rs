//! The fuzz targets' common entry, and the inputs that several of them need.

mod comparisons;
pub mod directory;
pub mod filters;
pub mod number;
pub mod ranges;
pub mod read;
pub mod seal;
pub mod wish;

pub use comparisons::watch_some;

/// A target: what is done with each input. As libFuzzer's own, but for [`watch_some`].
#[macro_export]
macro_rules! fuzz_target {
    (|$data:ident: &[u8]| $body:expr) => {
        ::libfuzzer_sys::fuzz_target!(|$data: &[u8]| {
            $crate::watch_some();
            $body
        });
    };
    (|$input:ident: $kind:ty| $body:expr) => {
        ::libfuzzer_sys::fuzz_target!(|$input: $kind| {
            $crate::watch_some();
            $body
        });
    };
}
