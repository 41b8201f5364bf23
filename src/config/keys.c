#include "config/keys.h"

#include <string.h>

// The field's C type is the key's type: the two can't disagree.
#define FIELD_TYPE(field)                                                                          \
    _Generic(((rfa_config *)0)->field,                                                             \
        int64_t: RFA_KEY_INT,                                                                      \
        double: RFA_KEY_REAL,                                                                      \
        bool: RFA_KEY_BOOL,                                                                        \
        char *: RFA_KEY_TEXT,                                                                      \
        int: RFA_KEY_CHOICE)
#define KEY(part, field)                                                                           \
    .section = #part, .name = #field, .type = FIELD_TYPE(part.field),                              \
    .offset = offsetof(rfa_config, part.field)

// In the order of the enumerations.
static const char *const attention_kinds[] = {"rfa", "softmax", "elu", "performer",
                                              "ra",  "lara",    "eva", NULL};
static const char *const directions[] = {"forward", "reverse", "both", NULL};
static const char *const maps[] = {"auto", "gaussian", "arccos", "positive", "oprf", NULL};
static const char *const norms[] = {"unit", "free", NULL};
static const char *const rows[] = {"auto", "iid", "orthogonal", "simplex", "fastfood", NULL};
static const char *const bandwidths[] = {"learned", "temperature", "fixed", NULL};
static const char *const gates[] = {"none", "learned", "decay", NULL};
static const char *const landmark_maps[] = {"learned", "mean", NULL};
static const char *const proposal_weights[] = {"balance", "specific", "biased", NULL};
static const char *const positions[] = {"learned", "sinusoidal", "none", NULL};
static const char *const poolings[] = {"mean", "first", "last", "padded_mean", NULL};
static const char *const matches[] = {"concat", "nli", NULL};
static const char *const carries[] = {"exact", "detach", "stateful", NULL};
static const char *const schedules[] = {"linear", "rsqrt", "cosine", "one_cycle", NULL};
static const char *const tested[] = {"last", "best", NULL};
static const char *const exchanges[] = {"auto", "exscan", "transposed", NULL};
static const char *const spectra[] = {"none", "exact", "all", NULL};

#define MANY 1e9                 // steps, examples: more than any run has
#define SEEDS 9007199254740992.0 // 2^53: exact in HDF5 attributes, Python and MATLAB

const rfa_key rfa_keys[] = {
    {KEY(data, file), .text = "data/listops.h5", .neutral = true, .unit = "",
     .help = "HDF5 data set, as rfa data writes it. Its digest, not its path, is part of a run."},
    {KEY(data, max_length), .min = 16, .max = 67108864, .number = 2000, .unit = "tokens",
     .help = "Longer examples are cut. LRA ListOps: 2000 (Tay et al. 2021)."},

    {KEY(model, layers), .min = 1, .max = RFA_MOST_LAYERS, .number = 2, .unit = "",
     .help = "Blocks of attention and feed-forward, layer norm before each."},
    {KEY(model, width), .min = 16, .max = 8192, .number = 64, .unit = "",
     .help = "E, width of the residual stream: a multiple of 16 and of heads."},
    {KEY(model, heads), .min = 1, .max = RFA_MOST_HEADS, .number = 2, .unit = "",
     .help = "H; each head has width / heads channels."},
    {KEY(model, feed_forward), .min = 16, .max = 65536, .number = 128, .unit = "",
     .help = "M, hidden width of the feed-forward parts: a multiple of 16."},
    {KEY(model, head), .min = 2, .max = 65536, .number = 128, .unit = "",
     .help = "Hidden width of the classifier that reads the pooled vector."},
    {KEY(model, head2), .max = 65536, .number = 0, .unit = "",
     .help = "Width of a second hidden layer there. 0: none."},
    {KEY(model, match), .number = RFA_MATCH_CONCAT, .choices = matches, .unit = "",
     .help = "What the classifier reads of a pair of documents, each encoded by itself: concat, "
             "[a, b] (Tay et al. 2021, code); nli, [a, b, a * b, a - b] (Xiong et al. 2021). Only "
             "for data sets of pairs."},
    {KEY(model, vocabulary), .max = 65536, .number = 0, .unit = "symbols",
     .help = "Rows of the table of symbols, at least as many as the data set has ids; 0: as many. "
             "Published models have tables of 32 and 512."},
    {KEY(model, positions), .number = RFA_POSITIONS_LEARNED, .choices = positions, .unit = "",
     .help = "Added to the token embedding: one learned row a position, the fixed sinusoids of "
             "Vaswani et al. 2017, or nothing. Every rank holds the table of learned rows: for "
             "millions of tokens take one of the others."},
    {KEY(model, pooling), .number = RFA_POOLING_FIRST, .choices = poolings, .unit = "",
     .help = "What the classifier reads: the mean over all tokens of the example (padding never "
             "counts), the first token, the last one, or padded_mean, the sum over max_length (the "
             "mean of Tay et al. 2021 and Xiong et al. 2021, whose padding is 0). A causal forward "
             "head at the first token "
             "sees that token alone, so it is refused."},
    {KEY(model, dropout), .max = 0.95, .number = 0.1, .unit = "",
     .help = "Probability; after the embedding, on both residual branches and inside the "
             "feed-forward part. Attention weights have none."},

    {KEY(attention, kind), .number = RFA_ATTENTION_RFA, .choices = attention_kinds, .unit = "",
     .help = "Linear in the length: rfa, random features, out = phi(q)^T S / (phi(q) . z), S = sum "
             "phi(k) "
             "v^T, z = sum phi(k) (Peng et al. 2021, eq. 5); elu, the same with phi = elu + 1 "
             "(Katharopoulos et al. "
             "2020, eq. 7); performer, positive features (Choromanski et al. 2021); lara, sum over "
             "landmarks c of "
             "softmax(log w_c) f_c, f_c = sum over keys of softmax(w_c . k - |k|^2 / 2) v (Zheng "
             "et al. 2022); eva, "
             "exact in windows, such summaries of chunks beyond (Zheng et al. 2023). Quadratic: "
             "softmax, exact, "
             "the baseline; ra, f_c at w = q + k_m + noise with m drawn from softmax(q . k), "
             "unbiased (Zheng et "
             "al. 2022)."},
    {KEY(attention, causal), .number = 0, .unit = "",
     .help = "A token attends to itself and to what stands before it; the states of the ranks "
             "before enter by a prefix scan (Peng et al. 2021, eq. 6)."},
    {KEY(attention, direction), .number = RFA_FORWARD, .choices = directions, .unit = "",
     .help =
         "Of causal heads: forward; reverse, itself and what stands after it; both, half of the "
         "heads each: an encoder whose heads may forget. Linear kinds."},
    {KEY(attention, features), .min = 2, .max = 4096, .number = 64, .unit = "projections",
     .help = "D, projections a head. gaussian gives a sine and a cosine each, so 2 D features "
             "(Rahimi and Recht 2007); the other maps give D. Kinds rfa and performer."},
    {KEY(attention, map), .number = 0, .choices = maps, .unit = "",
     .help = "Features of kind rfa: gaussian (auto; Peng et al. 2021, eq. 4), sin(w . x) and cos(w "
             ". x), kernel "
             "exp(-|q - k|^2 / 2), or arccos, relu(w . x). Of performer: positive (auto), exp(w . "
             "x - |x|^2 / 2) "
             "(Choromanski et al. 2021, lemma 1), or oprf, exp(a |w|^2 + (1 - 4 a)^(1/2) w . x - "
             "|x|^2 / 2) with "
             "the a of least variance (Likhosherstov et al. 2022)."},
    {KEY(attention, norm), .number = RFA_NORM_UNIT, .choices = norms, .unit = "",
     .help = "unit: queries and keys are scaled to norm 1. free: they keep it, divided by d^(1/4), "
             "and keys carry exp(|k|^2 / 2) (Peng et al. 2021, App. A.4). Only for kind rfa."},
    {KEY(attention, rows), .number = 0, .choices = rows, .unit = "",
     .help = "Rows of a projection: iid N(0, I) (auto for rfa); orthogonal in blocks (auto for "
             "performer; Yu et al. 2016); simplex (Reid et al. 2023); fastfood, Hadamard products "
             "with learned diagonals (Le et al. 2013, Yang et al. 2015)."},
    {KEY(attention, pool), .min = 1, .max = 100000, .number = 200, .unit = "matrices",
     .help = "Projections drawn once; a draw takes a different one for each layer and head without "
             "replacement (Peng et al. 2021, App. A). Kinds rfa and performer."},
    {KEY(attention, redraw), .max = MANY, .number = 1, .unit = "steps",
     .help =
         "Training steps that take the same projections. 1 (Peng et al. 2021): evaluation takes "
         "matrix h of the pool for head h; more (Performer: 1000): evaluation takes those in "
         "use; 0: always matrix h."},
    {KEY(attention, sigma), .number = RFA_BANDWIDTH_LEARNED, .choices = bandwidths, .unit = "",
     .help = "w = sigma o w~ with sigma learned for each channel (Peng et al. 2021, eq. 8), or "
             "1 / temperature, learned for each head, or fixed. Only for kind rfa."},
    {KEY(attention, bandwidth), .min = 1e-3, .max = 1e3, .number = 1, .unit = "",
     .help = "Initial sigma: the kernel is exp(-|sigma o (q - k)|^2 / 2), so larger is sharper. "
             "Only for kind rfa."},
    {KEY(attention, gate), .number = RFA_GATE_NONE, .choices = gates, .unit = "",
     .help =
         "How causal heads forget: learned, g = sigmoid(w . x + b) of the layer's input (Peng "
         "et al. 2021, eq. 7); decay, 1 - 2^(-5-i) for head i (Sun et al. 2023). Linear kinds."},
    {KEY(attention, gate_bias), .min = -20, .max = 20, .number = 2, .unit = "",
     .help = "Initial b of learned gates: 2 keeps 0.88 of a state each token."},
    {KEY(attention, landmarks), .min = 1, .max = 65536, .number = 49, .unit = "",
     .help = "C, pieces of a sequence that are summed up: proposals N(mu_c, I) of lara, mu_c = q_c "
             "+ k_c (Zheng "
             "et al. 2022); chunks of eva, of max_length / C tokens (Zheng et al. 2023)."},
    {KEY(attention, landmark_map), .number = RFA_LANDMARKS_LEARNED, .choices = landmark_maps,
     .unit = "",
     .help = "What is averaged over a piece: learned, a linear map and a norm of queries and keys; "
             "mean, queries and keys as they are. Kinds lara and eva."},
    {KEY(attention, draws), .min = 1, .max = 64, .number = 1, .unit = "samples",
     .help = "Samples of a query (ra) or of a landmark (lara) in training; evaluation has none of "
             "their noise."},
    {KEY(attention, antithetic), .number = 0, .unit = "",
     .help = "Draws come in pairs mu + noise, mu - noise. Only for kind lara, with even draws."},
    {KEY(attention, weights), .number = RFA_WEIGHTS_SPECIFIC, .choices = proposal_weights,
     .unit = "",
     .help = "How proposals share a query (Zheng et al. 2022): balance, the balance heuristic, "
             "p_c(w_c) / sum p_c'(w_c); "
             "specific, plus specificity (r_c - mean r), r = softmax(q . q_c); biased, times exp(q "
             ". mu_c). "
             "Only for kind lara."},
    {KEY(attention, specificity), .max = 100, .number = 1, .unit = "",
     .help = "Of specific weights: 1, or 2 for images (Zheng et al. 2022). Only for kind lara."},
    {KEY(attention, window), .min = 1, .max = 65536, .number = 64, .unit = "tokens",
     .help = "Blocks within which attention is exact, rounded up to whole chunks of max_length / "
             "landmarks tokens. Only for kind eva."},

    {KEY(parallel, sequence), .max = 65536, .number = 0, .neutral = true, .unit = "ranks",
     .help = "Ranks that share one sequence; it divides the number of ranks, and the other factor "
             "is data parallel. 0: all ranks."},
    {KEY(parallel, segments), .min = 1, .max = 4096, .number = 8, .unit = "",
     .help = "G, a power of two: pieces of a sequence, and the most ranks that can share one. "
             "Changes the last bits, so a run keeps it; the rank count does not."},
    {KEY(parallel, threads), .min = 1, .max = 1024, .number = 1, .neutral = true, .unit = "",
     .help = "OpenMP threads a rank."},
    {KEY(parallel, exchange), .number = 0, .choices = exchanges, .neutral = true, .unit = "",
     .help = "How states cross the ranks: MPI_Exscan, all-to-all of subtree sums, or whichever "
             "keeps the "
             "bits independent of the rank count, which a forced exscan may not."},

    {KEY(train, seed), .max = SEEDS, .number = 1, .unit = "",
     .help = "Of parameters, projections, dropout and the order of examples."},
    {KEY(train, steps), .min = 1, .max = MANY, .number = 5000, .unit = "steps",
     .help = "Optimiser steps of the whole run, resumed ones included."},
    {KEY(train, batch), .min = 1, .max = 65536, .number = 32, .unit = "examples",
     .help = "Examples a step, over all ranks."},
    {KEY(train, micro_batch), .max = 65536, .number = 0, .neutral = true, .unit = "examples",
     .help = "Examples that a data-parallel group holds at once: less memory, more passes. 0: "
             "all of its share."},
    {KEY(train, window), .max = 67108864, .number = 0, .unit = "tokens",
     .help = "Longer examples are walked window by window, a multiple of 16 tokens, in the memory "
             "of one window: states go from window to window, and in the backward their adjoints "
             "go back, each window but the last being computed once more (about 4/3 of the time). "
             "The gradient is that of the whole sequence. Causal forward linear attention only. 0: "
             "no windows."},
    {KEY(train, carry), .number = RFA_CARRY_EXACT, .choices = carries, .unit = "",
     .help = "exact: adjoints of states cross the borders of windows; detach: they stop there, the "
             "truncated gradient; stateful: each window is a step of its own, read out by itself, "
             "with the states of the steps before (Peng et al. 2021); validation and checkpoints "
             "wait for the end of a batch."},
    {KEY(train, recompute), .number = 0, .neutral = true, .unit = "",
     .help = "Keep only the blocks' inputs for the backward and compute the rest once more: less "
             "memory, about 4/3 of the time, the same bits. Linear kinds exchange nothing anew."},
    {KEY(train, rate), .max = 1, .number = 1e-3, .unit = "", .help = "Peak learning rate."},
    {KEY(train, warmup), .max = MANY, .number = 1000, .unit = "steps",
     .help = "Linear rise to the peak."},
    {KEY(train, schedule), .number = RFA_SCHEDULE_LINEAR, .choices = schedules, .unit = "",
     .help = "What follows: linear, a straight fall to 0; rsqrt, peak (warmup / step)^(1/2); "
             "cosine, half a wave over all steps; one_cycle, from rate / 25 in a straight line up "
             "to the peak and down to rate / 250000 (Smith and Topin 2019). rsqrt and cosine are "
             "those of the Long Range Arena's code (Tay et al. 2021), where rate is base / "
             "warmup^(1/2) for rsqrt."},
    {KEY(train, cycle_beta1), .number = 0, .unit = "",
     .help = "With one_cycle: beta1 goes from .95 to .85 at the peak and back, as in PyTorch by "
             "default."},
    {KEY(train, weight_decay), .max = 1, .number = 0, .unit = "",
     .help = "Decoupled, times the learning rate (AdamW, Loshchilov and Hutter 2019)."},
    {KEY(train, beta1), .max = 0.9999, .number = 0.9, .unit = "",
     .help = "Decay of the mean of gradients (Adam, Kingma and Ba 2015)."},
    {KEY(train, beta2), .max = 0.999999, .number = 0.999, .unit = "",
     .help = "Decay of the mean of squared gradients."},
    {KEY(train, epsilon), .min = 1e-12, .max = 1, .number = 1e-6, .unit = "",
     .help = "Added to the root of the mean of squared gradients."},
    {KEY(train, clip), .max = 1e6, .number = 1, .unit = "",
     .help = "Largest global L2 norm of the gradient; a longer one is scaled down. 0: off."},
    {KEY(train, evaluate_every), .max = MANY, .number = 500, .neutral = true, .unit = "steps",
     .help = "Validation during training. 0: only at the end."},
    {KEY(train, evaluate_examples), .max = MANY, .number = 0, .unit = "examples",
     .help = "First examples of the validation split that count. 0: all."},
    {KEY(train, patience), .max = MANY, .number = 0, .unit = "validations",
     .help =
         "The run ends, finished, when so many validations in a row were no better than the best "
         "one. 0: it takes all its steps."},
    {KEY(train, test), .number = 0, .choices = tested, .unit = "",
     .help =
         "Parameters that the test split is read with at the end: the last ones, or those of the "
         "best validation (ties: the earlier), from RUN.best.ckpt."},
    {KEY(train, test_examples), .max = MANY, .number = 0, .unit = "examples",
     .help = "First examples of the test split that the result at the end is of, for trials. 0: "
             "all, as a result that is compared with others must be."},
    {KEY(train, checkpoint_every), .max = MANY, .number = 500, .neutral = true, .unit = "steps",
     .help = "Steps that a crash can cost. 0: only at the end or when stopped."},
    {KEY(train, checkpoint_minutes), .max = 1e6, .number = 0, .neutral = true, .unit = "minutes",
     .help = "A checkpoint also after this time without one. 0: off."},
    {KEY(train, check_every), .max = MANY, .number = 100, .neutral = true, .unit = "steps",
     .help =
         "How often the ranks compare a digest of their parameters, which must be the same; also "
         "before each checkpoint. 0: only then."},
    {KEY(train, max_minutes), .max = 1e6, .number = 0, .neutral = true, .unit = "minutes",
     .help =
         "Stops before this time with a checkpoint and exit code 85, to be resumed; the job's own "
         "end is known from SLURM_JOB_END_TIME or RFA_END_TIME. 0: off."},

    {KEY(bench, cases), .text = "gemm, features, attention, exchange, step", .neutral = true,
     .unit = "",
     .help = "What rfa bench FILE measures: gemm, features, attention, exchange, step, length, "
             "separated by commas. This section is no part of a run."},
    {KEY(bench, attention), .text = "all", .neutral = true, .unit = "",
     .help = "Kinds of the case attention, separated by commas: words joined by '+', such as "
             "rfa+causal+gated; 'all' that there are; 'own', that of section attention, which the "
             "words change."},
    {KEY(bench, lengths), .text = "4096", .neutral = true, .unit = "",
     .help = "N, tokens of an example, of features, attention and length; separated by commas."},
    {KEY(bench, sizes), .text = "64, 256, 1024", .neutral = true, .unit = "",
     .help = "n of the products of n x n matrices of the case gemm."},
    {KEY(bench, states), .text = "16640, 133120", .neutral = true, .unit = "",
     .help = "Numbers of a state, of the case exchange. One head of 64 sines, 64 cosines and 64 "
             "channels has 8322."},
    {KEY(bench, repeats), .min = 1, .max = 1000, .number = 5, .neutral = true, .unit = "",
     .help = "Timed repeats of each case, after one that warms up; a call of 5 s or more needs no "
             "warming."},
    {KEY(bench, examples), .min = 1, .max = 4096, .number = 1, .neutral = true, .unit = "",
     .help = "B, examples of the cases attention and exchange."},
    {KEY(bench, vocabulary), .min = 2, .max = 65536, .number = 20, .neutral = true, .unit = "",
     .help = "Symbols of the synthetic tokens of step and length."},
    {KEY(bench, classes), .min = 2, .max = 65536, .number = 10, .neutral = true, .unit = "",
     .help = "Classes of the synthetic examples of step and length."},
    {KEY(bench, ceiling), .min = 32, .max = 8192, .number = 1024, .neutral = true, .unit = "",
     .help = "n of the product of n x n matrices whose rate is the ceiling."},

    {KEY(fidelity, file), .text = "none", .neutral = true, .unit = "",
     .help = "Heads that rfa capture wrote, for rfa fidelity; none: ensembles. This section is no "
             "part of a run."},
    {KEY(fidelity, ensembles), .text = "iid, shared, smooth", .neutral = true, .unit = "",
     .help = "Of queries and keys: iid, independent directions; shared, all lean on one direction; "
             "smooth, autoregressive along the sequence (coefficient 0.95), queries like keys."},
    {KEY(fidelity, kinds), .text = "rfa+free, performer, lara, eva+quiet, mean", .neutral = true,
     .unit = "",
     .help = "Estimators, words joined by '+': rfa (free, arccos, iid, orthogonal, simplex), "
             "performer (oprf, iid, orthogonal, simplex), elu, ra (quiet), lara (balance, biased, "
             "antithetic, quiet), eva (quiet), mean (of the values, whatever the query). quiet: "
             "without noise, as in evaluation. Unit norms of rfa take the sigma that estimates the "
             "same softmax where all norms are equal."},
    {KEY(fidelity, norms), .text = "1, 2", .neutral = true, .unit = "",
     .help = "Of queries and keys of the ensembles, times d^(-1/4)."},
    {KEY(fidelity, features), .text = "16, 64, 256", .neutral = true, .unit = "",
     .help = "F, rows of a state: sines and cosines of F / 2 projections, F projections of other "
             "maps, F samples of lara, F chunks of eva with windows of max(N / F, 16) tokens."},
    {KEY(fidelity, length), .min = 16, .max = 1048576, .number = 512, .neutral = true,
     .unit = "tokens", .help = "N of the ensembles."},
    {KEY(fidelity, width), .min = 2, .max = 1024, .number = 64, .neutral = true, .unit = "",
     .help = "d, channels of a head of the ensembles."},
    {KEY(fidelity, heads), .max = 4096, .number = 0, .neutral = true, .unit = "",
     .help = "First heads of the file that are taken. 0: all."},
    {KEY(fidelity, trials), .min = 1, .max = 10000, .number = 5, .neutral = true, .unit = "",
     .help = "Independent draws of every estimator, and of the ensembles; from train.seed on."},
    {KEY(fidelity, matrix), .number = 1, .neutral = true, .unit = "",
     .help = "Also the N x N matrices of the estimates, against the exact one."},
    {KEY(fidelity, spectrum), .number = 0, .choices = spectra, .neutral = true, .unit = "",
     .help = "Singular values: of no matrix, of the exact ones, or of all, each of the first "
             "trial."},
    {KEY(fidelity, values), .min = 1, .max = 65536, .number = 256, .neutral = true, .unit = "",
     .help = "Leading singular values that are kept, or all N when there are fewer."},
    {KEY(fidelity, full), .min = 1, .max = 46340, .number = 8192, .neutral = true, .unit = "tokens",
     .help = "Longer sequences get their leading singular values by a randomised range finder, not "
             "all of them."},
    {KEY(fidelity, ceiling), .min = 64, .max = 65536, .number = 1024, .neutral = true, .unit = "",
     .help = "n of the product of n x n matrices by PDGEMM whose rate is the ceiling."},
};
const int rfa_key_count = sizeof rfa_keys / sizeof *rfa_keys;

const rfa_key *rfa_key_find(const char *section, const char *name)
{
    for (const rfa_key *key = rfa_keys; key < rfa_keys + rfa_key_count; key++) {
        if (strcmp(key->section, section) == 0 && strcmp(key->name, name) == 0) {
            return key;
        }
    }
    return NULL;
}

bool rfa_key_is_section(const char *section)
{
    for (const rfa_key *key = rfa_keys; key < rfa_keys + rfa_key_count; key++) {
        if (strcmp(key->section, section) == 0) {
            return true;
        }
    }
    return false;
}

// All bytes are set, padding and the tails of texts too.
void rfa_config_defaults(rfa_config *config)
{
    memset(config, 0, sizeof *config);
    for (const rfa_key *key = rfa_keys; key < rfa_keys + rfa_key_count; key++) {
        void *field = (char *)config + key->offset;
        switch (key->type) {
        case RFA_KEY_INT: *(int64_t *)field = (int64_t)key->number; break;
        case RFA_KEY_REAL: *(double *)field = key->number; break;
        case RFA_KEY_BOOL: *(bool *)field = key->number != 0; break;
        case RFA_KEY_CHOICE: *(int *)field = (int)key->number; break;
        case RFA_KEY_TEXT: memcpy(field, key->text, strlen(key->text)); break;
        }
    }
}
