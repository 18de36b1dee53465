//! The JSON Schema of an experiment, for editors.
//!
//! It is written by hand because editors show its text beside a key.
//! The tests hold it to the parser: both know the same keys and kinds.

/// The schema, as `toclip schema` prints it.
pub const SCHEMA: &str = include_str!("schema.json");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;
    use crate::read::{KEYS, parse, parse_file};
    use serde_json::{Value, json};
    use std::collections::BTreeSet;
    use std::path::Path;

    fn schema() -> Value {
        serde_json::from_str(SCHEMA).unwrap()
    }

    /// As much of JSON Schema as ours uses; a keyword that it does not know is an error.
    fn valid(value: &Value, schema: &Value, root: &Value) -> bool {
        let number = |limit: &Value| value.as_f64().is_none_or(|x| x >= limit.as_f64().unwrap());
        let above = |limit: &Value| value.as_f64().is_none_or(|x| x > limit.as_f64().unwrap());
        schema.as_object().unwrap().iter().all(|(keyword, rule)| match keyword.as_str() {
            "$schema" | "title" | "description" | "default" | "examples" | "definitions" => true,
            "$ref" => valid(value, root.pointer(&rule.as_str().unwrap()[1..]).unwrap(), root),
            "const" => value == rule,
            "enum" => rule.as_array().unwrap().contains(value),
            "type" => match rule.as_str().unwrap() {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "integer" => value.is_u64() || value.is_i64(),
                "number" => value.is_number(),
                other => panic!("type {other}"),
            },
            "anyOf" => rule.as_array().unwrap().iter().any(|s| valid(value, s, root)),
            "oneOf" => {
                rule.as_array().unwrap().iter().filter(|s| valid(value, s, root)).count() == 1
            }
            "properties" => value.as_object().is_none_or(|fields| {
                fields.iter().all(|(k, v)| rule.get(k).is_none_or(|s| valid(v, s, root)))
            }),
            "required" => {
                let names = rule.as_array().unwrap();
                names.iter().all(|name| value.get(name.as_str().unwrap()).is_some())
            }
            "additionalProperties" => {
                let known = &schema["properties"];
                value.as_object().is_none_or(|f| f.keys().all(|k| known.get(k).is_some()))
            }
            "items" => value.as_array().is_none_or(|all| all.iter().all(|v| valid(v, rule, root))),
            "minItems" => {
                value.as_array().is_none_or(|all| all.len() as u64 >= rule.as_u64().unwrap())
            }
            "uniqueItems" => value
                .as_array()
                .is_none_or(|all| (1..all.len()).all(|i| !all[..i].contains(&all[i]))),
            "minimum" => number(rule),
            "exclusiveMinimum" => above(rule),
            "maximum" => !above(rule) || value.as_f64() == rule.as_f64() || !value.is_number(),
            "exclusiveMaximum" => !number(rule) || !value.is_number(),
            other => panic!("the validator does not know {other}"),
        })
    }

    /// An experiment with one key changed, as TOML.
    fn with(key: &str, value: &Value) -> String {
        let mut experiment = json!({
            "spectrum": { "kind": "isotropic", "dim": 10 },
            "start": { "kind": "uniform", "norm": 1.0 },
            "noise": { "family": "gaussian", "sigma": 0.5 },
            "time": 2.0,
            "learning_rate": 0.5,
            "clip": 0.9,
        });
        if ["model", "teacher"].contains(&key) {
            experiment["model"] = json!({ "kind": "logistic" });
            experiment["teacher"] = json!({ "kind": "uniform", "norm": 3.0 });
            experiment.as_object_mut().unwrap().remove("noise");
        }
        experiment[key] = value.clone();
        toml::to_string(&experiment).unwrap()
    }

    fn error(key: &str, value: &Value) -> String {
        parse_file(&with(key, value), Path::new("e.toml")).unwrap_err().to_string()
    }

    /// The names after "expected one of".
    fn expected(error: &str) -> BTreeSet<String> {
        let Some((_, names)) = error.split_once("expected one of: ") else {
            return BTreeSet::new();
        };
        names.split(", ").map(str::to_owned).collect()
    }

    /// (key of the experiment, tag, the branches of the schema) of every part with kinds.
    fn parts() -> Vec<(&'static str, &'static str, Vec<Value>)> {
        let schema = schema();
        let of = |place: &str| schema.pointer(place).unwrap().as_array().unwrap().clone();
        let property = |key: &str| of(&format!("/properties/{key}/oneOf"));
        let schedules = of("/definitions/schedule/oneOf");
        let clips = [of("/definitions/rule/oneOf"), schedules.clone()].concat();
        let rates = [schedules, vec![schema["definitions"]["greedy"].clone()]].concat();
        let margins = property("margin").into_iter().skip(1).collect();
        vec![
            ("spectrum", "kind", property("spectrum")),
            ("start", "kind", property("start")),
            ("model", "kind", property("model")),
            ("teacher", "kind", property("teacher")),
            ("noise", "family", property("noise")),
            ("covariates", "kind", property("covariates")),
            ("learning_rate", "kind", rates),
            ("margin", "kind", margins),
            ("clip", "kind", clips),
        ]
    }

    #[test]
    fn schema_and_parser_know_the_same_keys() {
        let schema = schema();
        let keys: BTreeSet<&str> =
            schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, KEYS.iter().map(|(key, _)| *key).collect());
        let required = schema["anyOf"][1]["required"].as_array().unwrap();
        let required: BTreeSet<&str> = required.iter().filter_map(Value::as_str).collect();
        let needed = KEYS.iter().filter(|(_, example)| example.is_some()).map(|(key, _)| *key);
        assert_eq!(required, needed.collect());
        let methods: Vec<&str> = Method::ALL.iter().map(|m| m.key()).collect();
        assert_eq!(schema["properties"]["methods"]["items"]["enum"], json!(methods));
    }

    /// Errors of the parser list the kinds and keys that it knows.
    #[test]
    fn schema_and_parser_know_the_same_kinds_and_their_fields() {
        for (key, tag, branches) in parts() {
            let kind = |b: &Value| b["properties"][tag]["const"].as_str().unwrap().to_owned();
            let mut tagged = json!({ tag: "zzz" });
            let known: BTreeSet<String> = branches.iter().map(kind).collect();
            assert_eq!(expected(&error(key, &tagged)), known, "{key}");
            for branch in &branches {
                tagged = json!({ tag: kind(branch), "zzz": 1 });
                let mut fields: BTreeSet<String> =
                    branch["properties"].as_object().unwrap().keys().cloned().collect();
                fields.remove(tag);
                let message = error(key, &tagged);
                if kind(branch) == "empirical" {
                    assert!(fields.iter().all(|f| message.contains(&format!("`{f}`"))));
                } else {
                    assert_eq!(expected(&message), fields, "{key}, {tagged}: {message}");
                }
            }
        }
        for key in ["points", "ensemble", "criteria"] {
            let schema = schema();
            let place = &schema["properties"][key];
            let table = place["oneOf"].get(1).unwrap_or(place);
            let fields = table["properties"].as_object().unwrap().keys().cloned().collect();
            assert_eq!(expected(&error(key, &json!({ "zzz": 1 }))), fields);
        }
    }

    #[test]
    fn the_experiments_of_the_repository_and_the_examples_of_the_schema_are_valid() {
        let schema = schema();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "toml") {
                let text = std::fs::read_to_string(&path).unwrap();
                let value: Value = toml::from_str(&text).unwrap();
                let (experiment, _) = parse_file(&text, &path).unwrap();
                assert!(valid(&value, &schema, &schema), "{}", path.display());
                // So is the experiment as we write it, with everything filled in.
                let value = serde_json::to_value(&experiment).unwrap();
                assert!(valid(&value, &schema, &schema), "{value}");
                count += 1;
            }
        }
        assert!(count >= 11);
        for (key, part) in schema["properties"].as_object().unwrap() {
            let defaults = part.get("default").into_iter();
            let examples = part["examples"].as_array().into_iter().flatten();
            for value in defaults.chain(examples) {
                assert!(valid(value, part, &schema), "{key}: {value}");
                parse_file(&with(key, value), Path::new("e.toml")).unwrap();
            }
        }
    }

    /// Every key of an experiment and of its parts is explained in the documentation.
    #[test]
    fn the_page_on_experiment_files_has_every_key() {
        fn names(schema: &Value, found: &mut BTreeSet<String>) {
            match schema {
                Value::Object(fields) => {
                    if let Some(Value::Object(properties)) = fields.get("properties") {
                        found.extend(properties.keys().cloned());
                    }
                    found.extend(fields.get("const").and_then(Value::as_str).map(str::to_owned));
                    fields.values().for_each(|value| names(value, found));
                }
                Value::Array(all) => all.iter().for_each(|value| names(value, found)),
                _ => {}
            }
        }
        let mut found = BTreeSet::new();
        names(&schema(), &mut found);
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiment-files.md");
        let page = std::fs::read_to_string(page).unwrap();
        let missing: Vec<_> =
            found.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn what_the_parser_refuses_by_its_form_the_schema_refuses() {
        let schema = schema();
        for (key, value) in [
            ("colour", json!(1)),
            ("time", json!(0)),
            ("time", json!("long")),
            ("spectrum", json!({ "kind": "isotropic" })),
            ("spectrum", json!({ "kind": "flat" })),
            ("noise", json!({ "family": "gaussian", "sigma": 0.5, "df": 2 })),
            ("covariates", json!({ "kind": "gaussian", "df": 2 })),
            ("clip", json!({ "kind": "max_ccc", "kappa": 2 })),
            ("learning_rate", json!(-0.5)),
            ("learning_rate", json!("none")),
            ("clip", json!(0)),
            ("clip", json!("never")),
            ("clip", json!({ "kind": "proportional", "kapa": 1 })),
            ("clip", json!({ "kind": "online" })),
            ("margin", json!("small")),
            ("criteria", json!({ "curves": [], "risk": [1, 2] })),
            ("methods", json!([])),
            ("methods", json!(["ode", "ode"])),
            ("methods", json!(["euler"])),
            ("ensemble", json!({ "runs": 0 })),
            ("ensemble", json!({ "confidence": 80 })),
            ("points", json!(1)),
            ("tolerance", json!(0.5)),
        ] {
            let text = with(key, &value);
            assert!(parse(&text, Path::new("e.toml")).is_err(), "{text}");
            let whole: Value = toml::from_str(&text).unwrap();
            assert!(!valid(&whole, &schema, &schema), "{text}");
        }
    }
}
