//! Gradient norms of single layers: which columns hold them, and their total.

use super::role::{is_bin_extreme, is_one_of};

/// Layers passed on with a row. Where a model has more, only their total is.
pub(super) const MOST: usize = 512;

/// Words that make a name the norm of the gradient.
const GRADIENT: &str = "grad grads gradient gradients";
const NORM: &str = "norm norms";
const BOTH: &str = "gnorm gradnorm gradnorms";
/// Words that such a name may also have.
const PLAIN: &str = "2 0 l2 per layer layers layerwise param params parameter parameters wise";
/// Words after `grad_norm/` that are not layers.
const NOT_LAYERS: &str = "total all global model train overall sum mean avg average max min std var \
     median ema smoothed pre post clip clipped clipping unclipped before after raw scaled unscaled \
     ratio threshold step epoch value norm squared sq log p50 p90 p95 p99";
/// Words in names of layers, apart from numbers.
const LAYER: &str = "weight bias kernel layer layers block blocks fc conv linear attn attention mlp \
     ffn embed embedding embeddings wte wpe head encoder decoder backbone stem stage";

/// The layer whose gradient norm a column holds: `grad_2.0_norm/<layer>` as Lightning writes it,
/// `grad_norm/<layer>`, `grad/<layer>/norm`, `<layer>.grad_norm`.
pub(super) fn layer_of(name: &str) -> Option<&str> {
    let metric = name.rsplit(" - ").next().unwrap_or(name).trim();
    let lower = metric.to_ascii_lowercase();
    if is_bin_extreme(metric) || !lower.contains("norm") || !lower.contains("gra") {
        return None;
    }
    if words(&lower).any(|w| is_one_of(w, "eval val valid validation test dev")) {
        return None;
    }
    let mut start = 0;
    for segment in lower.split_inclusive('/') {
        let after = start + segment.len();
        if segment.ends_with('/') && is_gradient_norm(segment) {
            return layer(&metric[after..]);
        }
        if segment.ends_with('/') && words(segment).all(|w| is_one_of(w, GRADIENT)) {
            let end = lower.strip_suffix("/norm").or_else(|| lower.strip_suffix(".norm"))?.len();
            return layer(metric.get(after..end)?);
        }
        start = after;
    }
    let (end, _) = lower.rmatch_indices(['/', '.']).find(|(at, _)| {
        // The dot of `grad_2.0_norm` is no separator.
        !lower[at + 1..].starts_with(|c: char| c.is_ascii_digit())
    })?;
    let of_layer = words(&lower[..end]).any(|word| {
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        letters.is_empty() || is_one_of(letters, LAYER)
    });
    (is_gradient_norm(&lower[end..]) && of_layer).then(|| &metric[..end])
}

/// The rest of a name, if it names a layer.
fn layer(rest: &str) -> Option<&str> {
    let lower = rest.to_ascii_lowercase();
    let other = words(&lower).all(|word| is_one_of(word, NOT_LAYERS));
    (!other).then_some(rest)
}

fn is_gradient_norm(text: &str) -> bool {
    let has = |list: &str| words(text).any(|word| is_one_of(word, list));
    let known = |word: &str| [GRADIENT, NORM, BOTH, PLAIN].iter().any(|list| is_one_of(word, list));
    words(text).all(known) && (has(BOTH) || has(GRADIENT) && has(NORM))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Whether each layer is a part of the model that no other layer contains: `encoder` is not if there
/// is `encoder.0`, and would be counted twice in the total.
pub(super) fn without_groups(layers: &[&str]) -> Vec<bool> {
    let mut sorted: Vec<&str> = layers.to_vec();
    sorted.sort_unstable();
    let contains = |layer: &str| {
        ['.', '/'].iter().any(|separator| {
            let start = format!("{layer}{separator}");
            let at = sorted.partition_point(|other| *other < start.as_str());
            sorted.get(at).is_some_and(|other| other.starts_with(&start))
        })
    };
    layers.iter().map(|layer| !contains(layer)).collect()
}

/// The norm of the whole gradient.
pub(super) fn total(layers: &[(u32, f64)]) -> Option<f64> {
    let squares: f64 = layers.iter().map(|(_, norm)| norm * norm).sum();
    (!layers.is_empty()).then(|| squares.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_layers() {
        for (name, layer) in [
            ("grad_2.0_norm/fc1.weight", "fc1.weight"),
            ("grad_2.0_norm/layers.0.bias", "layers.0.bias"),
            ("grad_2_norm/fc1", "fc1"),
            ("run-1 - grad_2.0_norm/fc1", "fc1"),
            ("grad_norm/encoder/0", "encoder/0"),
            ("train/grad_norm/lm_head", "lm_head"),
            ("Grad Norm/Head", "Head"),
            ("per_layer_grad_norm/Wte", "Wte"),
            ("grad/h.0.attn/norm", "h.0.attn"),
            ("optim/grad/transformer.wte.weight.norm", "transformer.wte.weight"),
            ("model.layers.0.weight.grad_norm", "model.layers.0.weight"),
            ("fc1/grad_norm", "fc1"),
            ("encoder/grad_norm", "encoder"),
            ("block3.grad_2.0_norm", "block3"),
        ] {
            assert_eq!(layer_of(name), Some(layer), "{name}");
        }
        for name in [
            "grad_norm",
            "train/grad_norm",
            "actor/grad_norm",
            "grad_norm/total",
            "grad_norm/pre_clip",
            "grad_norm/max",
            "grad_2.0_norm_total",
            "grad_1.0_norm/fc1",
            "grad_inf_norm/fc1",
            "grad_norm_squared/fc1",
            "grad/norm",
            "gradients/fc1.weight",
            "Gradients/Total Norm",
            "eval/grad_norm/fc1",
            "weight_norm/fc1",
            "fc1.weight_norm",
            "r - grad_norm/fc1__MAX",
            "max_grad_norm",
            "",
            "/",
        ] {
            assert_eq!(layer_of(name), None, "{name}");
        }
    }

    #[test]
    fn groups_of_layers_are_not_counted_twice() {
        let layers = ["a", "a.0", "a.0.w", "ab", "b/x", "b", "c"];
        assert_eq!(without_groups(&layers), [false, false, true, true, true, false, true]);
    }
}
