//! Kinds of settings, each of which says how a value is read and written: texts, paths, numbers, switches, sizes.

macro_rules! text {
    ($section:literal, $key:literal, $($field:ident).+, $about:literal) => {
        Setting {
            section: $section,
            key: $key,
            about: $about,
            quoted: true,
            get: |config| config.$($field).+.to_string(),
            set: |config, text| {
                config.$($field).+ = parse(text)?;
                Ok(())
            },
        }
    };
}

macro_rules! file {
    ($section:literal, $key:literal, $($field:ident).+, $about:literal) => {
        Setting {
            section: $section,
            key: $key,
            about: $about,
            quoted: true,
            get: |config| config.$($field).+.display().to_string(),
            set: |config, text| {
                config.$($field).+ = text.into();
                Ok(())
            },
        }
    };
}

/// A value that stands in the file as it is: how it is read from a text, and what that should have been.
macro_rules! unquoted {
    (
        $section:literal, $key:literal, $($field:ident).+, $about:literal,
        $text:ident => $read:expr, $expected:literal
    ) => {
        Setting {
            section: $section,
            key: $key,
            about: $about,
            quoted: false,
            get: |config| config.$($field).+.to_string(),
            set: |config, $text| {
                config.$($field).+ = $read.map_err(|_| $expected.to_owned())?;
                Ok(())
            },
        }
    };
}

macro_rules! number {
    ($section:literal, $key:literal, $($field:ident).+, $about:literal) => {
        unquoted!(
            $section, $key, $($field).+, $about,
            text => text.replace('_', "").parse(), "a whole number"
        )
    };
}

macro_rules! switch {
    ($section:literal, $key:literal, $($field:ident).+, $about:literal) => {
        unquoted!(
            $section, $key, $($field).+, $about,
            text => text.parse(), "true or false"
        )
    };
}

macro_rules! size {
    ($section:literal, $key:literal, $($field:ident).+, $about:literal) => {
        Setting {
            section: $section,
            key: $key,
            about: $about,
            quoted: true,
            get: |config| ByteSize(config.$($field).+.into()).to_string(),
            set: |config, text| {
                let size: ByteSize = text.parse()?;
                let fits = size.0.try_into();
                config.$($field).+ = fits.map_err(|_| "less than 4GiB".to_owned())?;
                Ok(())
            },
        }
    };
}

pub(super) use {file, number, size, switch, text, unquoted};
