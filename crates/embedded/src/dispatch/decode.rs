//! JSON bodies. Unlike a plain reader, this one notices fields that are given twice, for which strict requests are
//! refused.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A body after reading.
pub(super) struct Decoded {
    pub(super) value: Value,
    /// What is wrong with the body without making it unreadable, such as `duplicate field "spec.size"`.
    pub(super) complaints: Vec<String>,
}

/// Reads JSON. If a field is given twice, the last value counts.
pub(super) fn decode(text: &[u8]) -> Result<Decoded, serde_json::Error> {
    let mut complaints = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(text);
    let place = Place { trail: Trail::Root, complaints: &mut complaints };
    let value = place.deserialize(&mut reader)?;
    reader.end()?;
    Ok(Decoded { value, complaints })
}

/// The path to a value. It is rendered only if there is something to say about the value.
#[derive(Clone, Copy)]
enum Trail<'a> {
    Root,
    Field(&'a Trail<'a>, &'a str),
    Index(&'a Trail<'a>, usize),
}

impl fmt::Display for Trail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(holder, name) => write!(f, "{holder}.{name}"),
            Self::Index(holder, index) => write!(f, "{holder}[{index}]"),
        }
    }
}

struct Place<'a> {
    trail: Trail<'a>,
    complaints: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let trail = Trail::Index(&self.trail, list.len());
            match items.next_element_seed(Place { trail, complaints: self.complaints })? {
                Some(item) => list.push(item),
                None => return Ok(list.into()),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let trail = Trail::Field(&self.trail, &name);
            if map.contains_key(&name) {
                self.complaints.push(format!("duplicate field \"{trail}\""));
            }
            let value = fields.next_value_seed(Place { trail, complaints: self.complaints })?;
            map.insert(name, value);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_that_is_given_twice_is_noticed_and_its_last_value_counts() {
        let decoded = decode(br#"{"a":{"b":1,"b":2},"c":[0,{"d":null,"d":-1.5}]}"#).unwrap();
        assert_eq!(decoded.value, json!({ "a": { "b": 2 }, "c": [0, { "d": -1.5 }] }));
        assert_eq!(decoded.complaints, ["duplicate field \"a.b\"", "duplicate field \"c[1].d\""]);
    }

    #[test]
    fn text_after_a_value_is_not_ignored() {
        assert!(decode(b"{} {}").is_err());
        assert!(decode(b"").is_err());
    }
}
