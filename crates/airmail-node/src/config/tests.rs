use super::*;

#[test]
fn what_is_printed_reads_back_as_itself() {
    let mut config = Config {
        durability: Some(Durability::OS),
        name: "a \"quoted\" name".into(),
        ..Config::default()
    };
    config.limits.message_bytes = 12_345;
    for storage in ["fast=memory:", "archive=disk:/x \"y\""] {
        config.set_storage(storage).unwrap();
    }
    let mut back = Config::default();
    back.take_toml(&config.to_toml()).unwrap();
    assert_eq!(back, config);
}

#[test]
fn every_setting_is_printed_with_its_meaning() {
    let text = Config::default().to_toml();
    for setting in SETTINGS {
        assert!(text.contains(setting.about), "{}", setting.name());
        assert!(text.contains(&format!("\n{} = ", setting.key)));
    }
}

#[test]
fn an_unknown_key_is_refused_by_name() {
    let mut config = Config::default();
    for (text, name) in [
        ("[node]\ndatas = \"x\"", "node.datas"),
        ("[nodes]\ndata = \"x\"", "nodes.data"),
        ("data = \"x\"", "data"),
    ] {
        let error = config.take_toml(text).unwrap_err();
        assert_eq!(error.field_name(), name);
    }
}

#[test]
fn the_environment_comes_before_the_file() {
    let mut config = Config::default();
    config
        .take_toml("[limits]\nmessage_bytes = \"2MiB\"\nattributes = 7")
        .unwrap();
    let environment = Environment::of([("AIRMAIL_LIMITS_MESSAGE_BYTES", "3MiB")]);
    config.take_environment(&environment).unwrap();
    assert_eq!(config.limits.message_bytes, 3 << 20);
    assert_eq!(config.limits.attributes, 7);
}

#[test]
fn a_misspelt_variable_of_a_section_is_refused_and_a_foreign_one_is_not() {
    let mut config = Config::default();
    let misspelt = Environment::of([("AIRMAIL_NODE_DATAS", "x")]);
    let error = config.take_environment(&misspelt).unwrap_err();
    assert_eq!(error.field_name(), "AIRMAIL_NODE_DATAS");
    let foreign = Environment::of([("AIRMAIL_URL", "airmail://x"), ("AIRMAIL_CONTEXT", "y")]);
    config.take_environment(&foreign).unwrap();
    assert_eq!(config, Config::default());
}

#[test]
fn a_value_that_cannot_be_names_key_value_and_limit() {
    let mut config = Config::default();
    let error = config.set("limits.message_bytes", "huge").unwrap_err();
    assert_eq!(error.field_name(), "limits.message_bytes");
    assert_eq!(error.found(), "huge");
    assert!(error.expected().contains("1MiB"));
    let variable = Environment::of([("AIRMAIL_LOG_FORMAT", "xml")]);
    let error = config.take_environment(&variable).unwrap_err();
    assert_eq!(error.field_name(), "AIRMAIL_LOG_FORMAT");
    assert_eq!(error.expected(), "text or json");
}

#[test]
fn defaults_are_valid_and_broken_relations_are_named() {
    Config::default().validate().unwrap();
    let mut config = Config::default();
    config.limits.message_bytes = 4 << 20;
    let error = config.validate().unwrap_err();
    assert_eq!(error.field_name(), "limits.message_bytes");
    assert!(error.expected().contains("limits.frame_bytes"));
}

#[test]
fn whatever_is_wrong_is_told_by_the_name_of_a_setting_that_there_is() {
    let values = [
        "",
        "0",
        "1",
        "3",
        "-1",
        "x",
        "off",
        "fixed",
        "0s",
        "1ms",
        "0B",
        "1B",
        "64KiB",
        "9GiB",
        "4294967295",
        "18446744073709551615",
        "memory:",
        "memory:?service_us=x",
        "disk:",
        "sqlite:",
        "postgres://",
        "postgres://db/mail",
        "mailboxes.db",
    ];
    // Alone, and beside what makes more settings count.
    let besides: [&[(&str, &str)]; 3] = [
        &[],
        &[("mailbox.url", "postgres://db/mail")],
        &[("log.url", "memory:"), ("flow.publish_limiter", "fixed")],
    ];
    let mut refused = 0;
    for beside in besides {
        for setting in SETTINGS {
            for value in values {
                let mut config = Config::default();
                for (name, value) in beside {
                    config.set(name, value).unwrap();
                }
                let done = config.set(&setting.name(), value);
                let Err(error) = done.and_then(|()| config.validate()) else {
                    continue;
                };
                refused += 1;
                let named = error.field_name();
                let known = SETTINGS.iter().any(|setting| setting.name() == named);
                assert!(known, "{}={value:?}: {error}", setting.name());
            }
        }
    }
    assert!(
        refused > 500,
        "{refused} refusals: the values are no longer wrong"
    );
}

#[test]
fn a_durability_that_memory_cannot_give_is_refused_before_the_start() {
    let mut config = Config::default();
    config.set("log.url", "memory:").unwrap();
    config.validate().unwrap();
    config.set("namespace.durability", "memory").unwrap();
    config.validate().unwrap();
    config.set("namespace.durability", "os").unwrap();
    let error = config.validate().unwrap_err();
    assert_eq!(error.code(), ErrorCode::DurabilityUnavailable);
    assert_eq!(error.found(), "os");
}

#[test]
fn more_copies_than_a_disk_has_are_refused_before_the_start() {
    let mut config = Config::default();
    config.set("namespace.durability", "os").unwrap();
    config.validate().unwrap();
    config.set("namespace.durability", "os:2").unwrap();
    assert_eq!(config.durability.unwrap().copies, 2);
    let error = config.validate().unwrap_err();
    assert_eq!(error.code(), ErrorCode::DurabilityUnavailable);
    assert_eq!(
        (error.found(), error.expected()),
        ("os:2", "fsync, on storage disk:")
    );
    assert!(config.set("namespace.durability", "os:0").is_err());
}

#[test]
fn space_in_a_log_filter_changes_nothing_and_harms_nothing() {
    let filter = |text: &str| {
        let mut config = Config::default();
        config.set("log.level", text).unwrap();
        config.log_filter().map(|filter| filter.to_string())
    };
    let plain = filter("info,airmail=debug").unwrap();
    assert_eq!(filter(" info,\t airmail=debug ").unwrap(), plain);
    assert_eq!(filter("info, x=debug").unwrap(), "x=debug,info");
}

#[test]
fn what_is_no_log_filter_is_refused() {
    for text in [
        "",
        "inof",
        "airmail",
        "airmail=",
        "airmail=debug=info",
        "info,,debug",
        "a[b{c=(}]=info",
    ] {
        let mut config = Config::default();
        config.set("log.level", text).unwrap();
        let error = config.log_filter().unwrap_err();
        assert_eq!(
            (error.code(), error.found()),
            (ErrorCode::InvalidArgument, text)
        );
    }
}

#[test]
fn a_list_is_set_by_a_file_and_by_a_variable_and_a_switch_is_true_or_false() {
    let mut config = Config::default();
    let text = "[http]\nhosts = [\"a.example\", \"::1\"]\n[listen]\nallow_anyone = true\n";
    config.take_toml(text).unwrap();
    assert_eq!(config.http_hosts, "a.example,::1".parse().unwrap());
    assert!(config.allow_anyone);
    let variables = Environment::of([
        ("AIRMAIL_HTTP_HOSTS", "b.example, 10.0.0.7"),
        ("AIRMAIL_LISTEN_ALLOW_ANYONE", "false"),
    ]);
    config.take_environment(&variables).unwrap();
    assert!(
        config
            .to_toml()
            .contains("hosts = [\"b.example\", \"10.0.0.7\"]\n")
    );
    assert!(!config.allow_anyone);
    for (name, value, expected) in [
        ("listen.allow_anyone", "yes", "true or false"),
        ("http.hosts", "http://a.example", "without a port"),
    ] {
        let error = config.set(name, value).unwrap_err();
        assert_eq!(error.field_name(), name);
        assert!(error.expected().contains(expected), "{error}");
    }
}

fn with_storages(first: &str, further: &[&str]) -> Config {
    let mut config = Config::default();
    config.set("log.url", first).unwrap();
    for storage in further {
        config.set_storage(storage).unwrap();
    }
    config
}

#[test]
fn a_storage_has_a_name_or_is_the_first() {
    let mut config = with_storages("memory:?service_us=5", &["fast=memory:?service_us=7"]);
    config.set_storage("disk:/a=b").unwrap();
    assert_eq!(config.log_url, "disk:/a=b");
    config
        .take_toml("[storage.slow]\nurl = \"disk:/c\"\n")
        .unwrap();
    let named: Vec<String> = config
        .storages()
        .unwrap()
        .iter()
        .map(|(name, url)| format!("{name} {url}"))
        .collect();
    assert_eq!(
        named,
        [" disk:/a=b", "fast memory:?service_us=7", "slow disk:/c"]
    );
    config.validate().unwrap();
    let fast = StorageName::new("fast").unwrap();
    let further = config.further_storages();
    let strongest = further.get(&fast).map(|of| of.strongest);
    assert_eq!(strongest, Some(Durability::MEMORY));
    assert!(config.set_storage("Fast=memory:").is_err());
    assert!(config.set_storage("=memory:").is_err());
}

#[test]
fn a_part_of_the_file_about_a_storage_says_its_url_and_no_more() {
    for (text, name) in [
        ("[storage.fast]\nurls = \"memory:\"", "storage.fast.urls"),
        ("[storage.fast]\nurl = 7", "storage.fast.url"),
        ("[storage.fast]", "storage.fast.url"),
        ("[storage.Fast]\nurl = \"memory:\"", "storage.Fast"),
        ("[log.fast]\nurl = \"memory:\"", "log.fast"),
        ("[storage]\nfast = \"memory:\"", "storage.fast"),
    ] {
        let error = Config::default().take_toml(text).unwrap_err();
        assert_eq!(error.field_name(), name, "{error}");
    }
}

#[cfg(feature = "kafka")]
#[test]
fn kafka_is_the_only_storage_or_stands_beside_a_first_one_with_a_prefix_of_its_own() {
    for (first, further, setting) in [
        ("kafka://a:9092", &["fast=memory:"][..], "log.url"),
        (
            "kafka://a:9092",
            &["far=kafka://a:9092?prefix=far"],
            "log.url",
        ),
        (
            "disk:/x",
            &["far=kafka://a:9092", "near=kafka://a:9092?skew=1s"],
            "storage.near.url",
        ),
    ] {
        let error = with_storages(first, further).validate().unwrap_err();
        assert_eq!(error.field_name(), setting, "{further:?}: {error}");
    }
    for first in ["disk:/x", "memory:"] {
        let far = ["far=kafka://a:9092", "near=kafka://a:9092?prefix=near"];
        let config = with_storages(first, &far);
        assert_eq!(config.validate(), Ok(()), "{first}");
        let name = StorageName::new("far").unwrap();
        let of = config.further_storages()[&name];
        assert!(!of.seal && !of.topic_index, "{of:?}");
    }
    let alone = with_storages("kafka://a:9092?replicas=1&min_insync=1", &[]);
    assert_eq!(alone.validate(), Ok(()));
}

#[test]
fn storages_that_do_not_fit_together_are_refused_by_the_setting() {
    for (first, further, limit) in [
        (
            "memory:",
            "fast=disk:/x",
            "memory:, as long as log.url is memory:",
        ),
        (
            "disk:/x",
            "fast=disk:/x",
            "a path of its own: log.url has this one",
        ),
        ("disk:/x", "fast=disk:/y/../x/.", "a path of its own"),
        ("disk:/x", "fast=disk:", "disk:PATH, memory: or kafka:"),
        ("disk:/x", "fast=", "disk:PATH, memory: or kafka:"),
        ("disk:/x", "fast=ftp:y", "disk:PATH, memory: or kafka:"),
        ("disk:/x", "fast=raft:y", "disk:PATH, memory: or kafka:"),
    ] {
        let error = with_storages(first, &[further]).validate().unwrap_err();
        assert_eq!(error.field_name(), "storage.fast.url", "{further}: {error}");
        assert_eq!(error.found(), further.split_once('=').unwrap().1);
        assert!(error.expected().starts_with(limit), "{further}: {error}");
    }
}
