//! The token ids of a text.
//!
//! GPT-2's own vocabulary is compiled in (`tiktoken-rs`), since weights are often published without
//! it and the targets need it with any model. A `tokenizer.json` beside the weights takes precedence:
//! it is what the model was trained with.

use std::path::Path;

use tiktoken_rs::r50k_base_singleton;
use tokenizers::{Tokenizer, TruncationParams};

use crate::error::bail;
use crate::targets::END_OF_TEXT;
use crate::{Error, Result};

/// GPT-2's ids.
const GPT2_VOCABULARY: usize = 50_257;

pub(crate) enum Tokens {
    Gpt2,
    File(Box<Tokenizer>),
}

impl Tokens {
    /// `tokenizer.json` in the folder, which must be there.
    pub fn read(folder: &Path, vocabulary: usize, most: usize) -> Result<Self> {
        let path = folder.join("tokenizer.json");
        if !path.exists() {
            bail!(in &path, "no such file; the model needs its tokenizer");
        }
        let wrong = |e: tokenizers::Error| Error::file(&path, e.to_string());
        let mut tokenizer = Tokenizer::from_file(&path).map_err(wrong)?;
        let ids = tokenizer.get_vocab(true).into_values().max().map_or(0, |id| id as usize + 1);
        if ids > vocabulary {
            bail!(in &path, "{ids} token ids, but the model has only {vocabulary}");
        }
        // The tokenizer truncates the text, not the special tokens around it.
        let marks =
            tokenizer.encode("", true).map_err(wrong)?.get_attention_mask().iter().sum::<u32>();
        if most <= marks as usize {
            bail!("at most {most} tokens leave no room for text next to {marks} special tokens");
        }
        let cut = TruncationParams { max_length: most, ..TruncationParams::default() };
        // The file may ask for padding to one length, which would enter the mean.
        tokenizer.with_padding(None).with_truncation(Some(cut)).map_err(wrong)?;
        Ok(Tokens::File(Box::new(tokenizer)))
    }

    /// For a GPT-2: the file where there is one, else GPT-2's own vocabulary.
    pub fn for_gpt2(folder: &Path, vocabulary: usize, most: usize) -> Result<Self> {
        if folder.join("tokenizer.json").exists() {
            return Tokens::read(folder, vocabulary, most);
        }
        if vocabulary < GPT2_VOCABULARY {
            bail!(in &folder.join("config.json"), "the model has {vocabulary} token ids, fewer than \
                  GPT-2's {GPT2_VOCABULARY}; add its tokenizer.json to the folder");
        }
        Ok(Tokens::Gpt2)
    }

    /// The ids of a line, at most so many. An empty line gets GPT-2's end of text and so
    /// has a vector.
    pub fn ids(&self, line: &str, most: usize) -> Result<Vec<u32>> {
        let mut ids = match self {
            Tokens::Gpt2 => gpt2_ids(line),
            Tokens::File(tokenizer) => tokenizer
                .encode_fast(line, true)
                .map_err(|e| Error::Invalid(format!("the line {line:?} cannot be tokenized: {e}")))?
                .get_ids()
                .to_vec(),
        };
        ids.truncate(most);
        if ids.is_empty() {
            ids.push(END_OF_TEXT);
        }
        Ok(ids)
    }
}

/// GPT-2's byte pairs. Text that looks like a special token is text.
pub(crate) fn gpt2_ids(line: &str) -> Vec<u32> {
    r50k_base_singleton().encode_ordinary(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpt2_tokens_are_the_published_ones() {
        // From the examples of the published encoder.
        assert_eq!(gpt2_ids("Hello world"), [15496, 995]);
        assert_eq!(gpt2_ids("hello 👋 world 🌍"), [31373, 50169, 233, 995, 12520, 234, 235]);
        assert_eq!(gpt2_ids(" = Robert"), [796, 5199]);
        assert!(!gpt2_ids("<|endoftext|>").contains(&END_OF_TEXT));
    }

    #[test]
    fn an_empty_line_has_a_token_and_a_long_one_is_cut() {
        let ids = |line: &str| Tokens::Gpt2.ids(line, 3).unwrap();
        assert_eq!(ids(""), [END_OF_TEXT]);
        assert_eq!(ids("Hello world").len(), 2);
        assert_eq!(ids(&"word ".repeat(100)).len(), 3);
    }
}
