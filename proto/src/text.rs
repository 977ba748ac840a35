//! Values that are text in JSON.

/// Implements serde for a value that is text in JSON, by `Display` and
/// `FromStr`, and `$framed` in frames. `$to` and `$from` convert to it and
/// back.
macro_rules! text {
    ($type:ident as $framed:ty: $to:expr, $from:expr) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    return serializer.collect_str(self);
                }
                let to: fn(&Self) -> $framed = $to;
                to(self).serialize(serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    let text = String::deserialize(deserializer)?;
                    return text.parse().map_err(serde::de::Error::custom);
                }
                let from: fn($framed) -> Result<Self, <Self as std::str::FromStr>::Err> = $from;
                from(<$framed>::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

/// Implements the JSON schema of a value whose serde is not derived.
macro_rules! schema {
    ($type:ident: $schema:tt) => {
        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}
