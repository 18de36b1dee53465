//! The role of a column, recognised by its name.

use serde::Serialize;

use super::layer_names::layer_of;

/// The role of a column in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// The step.
    Step,
    /// The gradient norm.
    Norm,
    /// The training loss.
    Loss,
    /// The learning rate.
    LearningRate,
    /// The loss scale of mixed precision.
    LossScale,
    /// The epoch.
    Epoch,
    /// The clipping threshold.
    Clip,
    /// The global batch size.
    BatchSize,
}

/// All roles with their names, in the order of the fields of [`crate::LogRow`].
pub(super) const ROLES: [(Role, &str); 8] = [
    (Role::Step, "step"),
    (Role::Norm, "gradient norm"),
    (Role::Loss, "loss"),
    (Role::LearningRate, "learning rate"),
    (Role::LossScale, "loss scale"),
    (Role::Epoch, "epoch"),
    (Role::Clip, "clipping threshold"),
    (Role::BatchSize, "global batch size"),
];

impl Role {
    /// The name for people.
    pub fn name(self) -> &'static str {
        ROLES[self as usize].1
    }
}

/// Whether a word is in a list of words separated by spaces.
pub(super) fn is_one_of(word: &str, list: &str) -> bool {
    list.split(' ').any(|w| w == word)
}

/// Whether a column is the minimum or maximum over a bin, which W&B exports next to the mean.
pub(super) fn is_bin_extreme(name: &str) -> bool {
    name.ends_with("__MIN") || name.ends_with("__MAX")
}

/// Words for things that have norms of their own, other than the gradient.
pub(super) const NOT_GRADIENTS: &str = "weight weights param params parameter parameters update \
     updates activation activations layer embedding embeddings hidden momentum logits";

/// The role that a name suggests, and a score: smaller is better.
pub(super) fn role_of(name: &str) -> Option<(Role, u32)> {
    // W&B writes `<run> - <metric>`.
    let metric = name.rsplit(" - ").next().unwrap_or(name).trim();
    if is_bin_extreme(metric) {
        return None;
    }
    if layer_of(name).is_some() {
        return None;
    }
    let lower = metric.to_lowercase();
    let words = |text: &str| -> Vec<String> {
        let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty());
        parts.map(str::to_owned).collect()
    };
    let all = words(&lower);
    let last = lower.rsplit('/').next().map(words).filter(|words| !words.is_empty())?;
    let exact = exact(&last.join("_"), &all, metric);
    // In `gradient_clip_val` it is the value.
    let clip = exact.is_some_and(|(role, _)| role == Role::Clip);
    if !clip && has(&all, "eval val valid validation test dev") {
        return None;
    }
    exact
        .or_else(|| norm(&last, &all).map(|score| (Role::Norm, score)))
        .or_else(|| loss(&all).map(|score| (Role::Loss, score)))
        .or_else(|| {
            let rate = has(&all, "lr") || (has(&all, "learning") && has(&all, "rate"));
            rate.then(|| (Role::LearningRate, 2 + 10 * (all.len() as u32 - 1)))
        })
}

/// Whether one of the words is in the list.
fn has(words: &[String], list: &str) -> bool {
    words.iter().any(|word| is_one_of(word, list))
}

/// Names with a single meaning.
fn exact(joined: &str, all: &[String], metric: &str) -> Option<(Role, u32)> {
    let train = all.len() > 1 && all[0] == "train";
    Some(match joined {
        "global_step" | "trainer_global_step" | "global_steps" => (Role::Step, 0),
        // W&B counts its own calls in `_step`.
        "step" if metric.starts_with('_') => (Role::Step, 7),
        "step" | "train_step" | "training_step" | "optimizer_step" => (Role::Step, 1),
        "iteration" | "iter" => (Role::Step, 2),
        "num_updates" | "n_updates" => (Role::Step, 3),
        // fairseq counts epochs in `update`.
        "update" | "updates" => (Role::Step, 5),
        "steps" | "iterations" | "s" | "it" => (Role::Step, 6),
        "learning_rate" | "lr" => (Role::LearningRate, u32::from(train)),
        "loss_scale" | "lossscale" | "grad_scale" | "amp_scale" | "scaler_scale" => {
            (Role::LossScale, 0)
        }
        "epoch" => (Role::Epoch, 0),
        "max_grad_norm" | "clip_grad" | "gradient_clip_val" | "grad_clip" | "gradient_clipping"
        | "clip_norm" | "grad_norm_clip" | "clip_grad_norm" | "grad_clip_norm" | "max_norm"
        | "gradient_clip_norm" | "clip_value" | "clip_threshold" => (Role::Clip, 0),
        "global_batch_size"
        | "effective_batch_size"
        | "total_batch_size"
        | "total_train_batch_size" => (Role::BatchSize, 0),
        _ => return None,
    })
}

/// The score of a gradient norm; `last` are the words after the last slash.
fn norm(last: &[String], all: &[String]) -> Option<u32> {
    let is_norm = |w: &String| is_one_of(w, "norm gnorm gradnorm gradientnorm");
    let is_grad =
        |w: &String| is_one_of(w, "grad grads gradient gradients gnorm gradnorm gradientnorm");
    if !all.iter().any(is_norm) {
        return None;
    }
    // `grad_norm/<layer>` is the norm of one parameter, unless it is called the total.
    let is_total = |w: &String| is_one_of(w, "total all global model train");
    if !last.iter().any(|w| is_norm(w) || is_total(w)) {
        return None;
    }
    if has(all, "ratio std var variance threshold coef coeff fraction frac") {
        return None;
    }
    // Other norms and functions of the norm. A `log/` before the name is only where it was logged.
    if has(last, "squared square sq sqr log ln log10 log2 inf linf l1")
        || last.windows(2).any(|w| w == ["1", "0"])
    {
        return None;
    }
    let mut score: i32 = 10;
    if !all.iter().any(is_grad) {
        // A bare `norm`, as in llm.c; other norms are of weights or activations.
        let bare = last.iter().all(|w| is_norm(w) || is_total(w));
        if !bare || has(all, NOT_GRADIENTS) {
            return None;
        }
        score += 30;
    }
    let plain = "norm 2 0 l2 train training total global metrics step all";
    for word in all.iter().filter(|w| !is_grad(w) && !is_one_of(w, plain)) {
        let penalty = match word.as_str() {
            "clip" | "clipping" => 0,
            // Advice needs the norm before clipping.
            "pre" | "before" | "unclipped" | "preclip" | "raw" | "unscaled" => -3,
            "post" | "after" | "clipped" | "postclip" => 30,
            "epoch" => 40,
            "ema" | "avg" | "mean" | "smoothed" | "max" | "min" => 25,
            _ => 20,
        };
        score = (score + penalty).max(1);
    }
    Some(score as u32)
}

fn loss(all: &[String]) -> Option<u32> {
    if has(all, "scale best aux min max z") {
        return None;
    }
    if all.len() == 1 && all[0] == "trl" {
        return Some(2);
    }
    let at = all.iter().position(|w| w == "loss")?;
    let plain = "train training lm global avg step metrics loss nll";
    let others = all.iter().filter(|w| !is_one_of(w, plain)).count() as u32;
    Some(at as u32 + all.len() as u32 - 1 + 10 * others)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str) -> Option<Role> {
        role_of(name).map(|(role, _)| role)
    }

    fn score(name: &str) -> u32 {
        role_of(name).unwrap().1
    }

    #[test]
    fn names_of_the_norm() {
        for name in [
            "grad_norm",
            "grad-norm",
            "grad norm",
            "gradient_norm",
            "gnorm",
            "grad/norm",
            "train/grad_norm",
            "total_grad_norm",
            "grad_2.0_norm_total",
            "norm",
            "global_norm",
            "my-run - train/grad_norm",
            "grad_norm/total",
            "actor/grad_norm",
            "grad_norm_step",
            "Gradients/Total Norm",
            "grad_norm_pre_clip",
            "log/grad_norm",
        ] {
            assert_eq!(role(name), Some(Role::Norm), "{name}");
        }
        for name in [
            "grad_2.0_norm/layers.0.weight",
            "run - grad_norm__MIN",
            "weight_norm",
            "param_norm",
            "eval/grad_norm",
            "grad_norm_std",
            "layer_norm",
            "max_grad_norm",
            "normal",
            "grad",
            "grad_norm_squared",
            "log_grad_norm",
            "train/grad_norm_log10",
            "grad_norm_inf",
            "grad_inf_norm_total",
            "grad_1.0_norm_total",
            "grad_norm_sq",
        ] {
            assert_ne!(role(name), Some(Role::Norm), "{name}");
        }
        // Names nearer to the norm of the full gradient before clipping come first.
        assert!(score("grad_norm_pre_clip") < score("grad_norm"));
        assert!(score("grad_norm") < score("grad_norm_clipped"));
        assert!(score("grad_norm_step") < score("grad_norm_epoch"));
        assert!(score("grad_norm") < score("actor/grad_norm"));
        assert!(score("grad_norm") < score("norm"));
    }

    #[test]
    fn names_of_the_others() {
        for (name, is) in [
            ("Step", Role::Step),
            ("train/global_step", Role::Step),
            ("iteration", Role::Step),
            ("num_updates", Role::Step),
            ("s", Role::Step),
            ("_step", Role::Step),
            ("loss", Role::Loss),
            ("lm loss", Role::Loss),
            ("trl", Role::Loss),
            ("loss_metrics/global_avg_loss", Role::Loss),
            ("train_loss", Role::Loss),
            ("lr", Role::LearningRate),
            ("learning rate", Role::LearningRate),
            ("lr-AdamW", Role::LearningRate),
            ("train/learning_rate", Role::LearningRate),
            ("loss scale", Role::LossScale),
            ("epoch", Role::Epoch),
            ("clip_grad", Role::Clip),
            ("max_grad_norm", Role::Clip),
            ("gradient_clip_val", Role::Clip),
            ("global batch size", Role::BatchSize),
        ] {
            assert_eq!(role(name), Some(is), "{name}");
        }
        for name in ["eval/loss", "val_loss", "runtime", "", " ", "/", "_", "train_batch_size", "é"]
        {
            assert_eq!(role(name), None, "{name}");
        }
        assert!(score("loss") < score("train/loss"));
        assert!(score("train/loss") < score("train/ploss_loss_0"));
        assert!(score("step") < score("_step"));
    }
}
