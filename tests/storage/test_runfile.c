// Precision: f32
#define _GNU_SOURCE // nftw
#include "storage/runfile_support.h"

#include "base/log.h"

#include <time.h>

static void test_round_trip(void **state)
{
    (void)state;
    const char *path = in_scratch("a/b/run.h5"); // folders are made
    rfa_run *run = NULL;
    rfa_run_view view;
    check_ok(rfa_run_create(&run, path, config_text, -1, false));
    rfa_run_set_text(run, "commit", "0123abc");
    rfa_run_set_text(run, "commit", "4567def");
    rfa_run_set_text(run, "hosts", "kn\xc3\xb6");
    rfa_run_set_text(run, "slurm_job", NULL);
    rfa_run_set_number(run, "ranks", 4);
    rfa_run_set_number(run, "megabytes", 0.5);
    rfa_run_set_flag(run, "dirty", true);
    add(run, 1, 100, 25);
    check_file(path, 100, 25, true); // of lines alone
    check_ok(rfa_run_write(run));
    check(size_of(in_scratch("a/b/run.jsonl")) == 0 && !is_there(in_scratch("a/b/run.h5.tmp")));
    check_file(path, 100, 25, false);
    const rfa_evaluation_record again = evaluation_record(100); // replaces the one of step 100
    check_ok(rfa_run_add_evaluation(run, &again));
    check_file(path, 100, 25, false);
    rfa_evaluation_record test = evaluation_record(75);
    strcpy(test.split, "test");
    test.correct = 17;
    check_ok(rfa_run_set_test(run, &test));
    check_ok(rfa_run_read(&view, path));
    check(view.test.correct == 17 && strcmp(view.state, "running") == 0);
    rfa_run_view_free(&view);
    rfa_run_set_state(run, "finished");
    check_ok(rfa_run_write(run));
    rfa_run_destroy(&run);
    check(!is_there(in_scratch("a/b/run.jsonl")));

    check_ok(rfa_run_read(&view, path));
    check_view(&view, 100, 25, false);
    check(strcmp(view.state, "finished") == 0 && strcmp(view.config_text, config_text) == 0);
    check(view.test.step == 75 && view.test.correct == 17 && view.test.examples == 20);
    check(strcmp(view.test.split, "test") == 0 && view.test.confusion[4] == 7);
    check(strcmp(rfa_attributes_text(&view.attributes, "commit"), "4567def") == 0);
    check(strcmp(rfa_attributes_text(&view.attributes, "hosts"), "kn\xc3\xb6") == 0);
    check(!rfa_attributes_find(&view.attributes, "slurm_job"));
    const rfa_run_attribute *ranks = rfa_attributes_find(&view.attributes, "ranks");
    const rfa_run_attribute *megabytes = rfa_attributes_find(&view.attributes, "megabytes");
    const rfa_run_attribute *dirty = rfa_attributes_find(&view.attributes, "dirty");
    check(ranks && ranks->whole && ranks->integer == 4);
    check(megabytes && !megabytes->whole && megabytes->number == 0.5);
    check(dirty && dirty->flag && dirty->integer == 1);
    rfa_run_view_free(&view);
}

static void test_empty_run(void **state)
{
    (void)state;
    const char *path = in_scratch("empty.h5");
    make_run(path, 0, 0, 1);
    check_file(path, 0, 1, false);
    check_status(rfa_run_read(&(rfa_run_view){0}, in_scratch("none.h5")), RFA_ERR_IO);
    check(strstr(rfa_error_text(), "none.h5: No such file") != NULL);
    spill(in_scratch("text.h5"), "hello", 5);
    check_status(rfa_run_read(&(rfa_run_view){0}, in_scratch("text.h5")), RFA_ERR_IO);
    check(strstr(rfa_error_text(), "text.h5") != NULL);
    check_status(rfa_run_create(&(rfa_run *){0}, in_scratch("x.hdf"), config_text, -1, true),
                 RFA_ERR_USAGE);
    check_status(rfa_run_create(&(rfa_run *){0}, in_scratch("x.h5"), "a: [1", -1, true),
                 RFA_ERR_USAGE);
    check(!is_there(in_scratch("x.jsonl")));
}

static void test_nothing_is_overwritten(void **state)
{
    (void)state;
    const char *path = in_scratch("kept.h5");
    rfa_run *run = NULL, *second = NULL;
    make_run(path, 10, 15, 5);
    spill(in_scratch("kept.ckpt"), "checkpoint", 10);
    copy_file(path, in_scratch("kept.copy"));
    check_status(rfa_run_create(&run, path, config_text, -1, false), RFA_ERR_USAGE);
    check(strstr(rfa_error_text(),
                 "kept.h5 exists: continue it with --resume or write over it with --overwrite"));
    check(run == NULL && same_file(path, in_scratch("kept.copy")));
    check_file(path, 15, 5, true);

    // Until the new run is first written, the old one stands.
    check_ok(rfa_run_create(&run, path, config_text, -1, true));
    check_file(path, 15, 5, true);
    check(is_there(in_scratch("kept.ckpt")));
    check_status(rfa_run_create(&second, path, config_text, -1, true), RFA_ERR_USAGE);
    check(strstr(rfa_error_text(), "is being written by another run") != NULL && !second);
    check_status(rfa_run_create(&second, path, config_text, 10, true), RFA_ERR_USAGE);
    // A step of the new run: from here on it is the one that counts.
    add(run, 1, 2, 5);
    check_file(path, 2, 5, true);
    check_ok(rfa_run_write(run));
    check_file(path, 2, 5, true);
    check(!is_there(in_scratch("kept.ckpt")));
    add(run, 3, 4, 5);
    rfa_run_destroy(&run);
    check_file(path, 4, 5, true);

    // Lines that an older run left beside a newer file do not count.
    copy_file(in_scratch("kept.jsonl"), in_scratch("newer.jsonl"));
    make_run(in_scratch("made.h5"), 7, 7, 5);
    copy_file(in_scratch("made.h5"), in_scratch("newer.h5"));
    check_file(in_scratch("newer.h5"), 7, 5, true);

    // Lines or a checkpoint alone are a former run, too.
    check(unlink(path) == 0);
    check_status(rfa_run_create(&run, path, config_text, -1, false), RFA_ERR_USAGE);
    spill(in_scratch("only.ckpt"), "checkpoint", 10);
    check_status(rfa_run_create(&run, in_scratch("only.h5"), config_text, -1, false),
                 RFA_ERR_USAGE);
    check_status(rfa_run_create(&run, in_scratch("absent.h5"), config_text, 3, false), RFA_ERR_IO);
    check(!is_there(in_scratch("absent.jsonl")));
}

static rfa_start_record start_record(int64_t step, double rate)
{
    rfa_start_record record = {
        .step = step, .ranks = 2 + step, .threads = 3, .sgemm_flops_per_second = rate};
    snprintf(record.started, sizeof record.started, "2025-01-31T12:00:%02dZ", (int)step);
    snprintf(record.commit, sizeof record.commit, "commit%d", (int)step);
    snprintf(record.hosts, sizeof record.hosts, "kn\xc3\xb6 kn%d", (int)step);
    return record;
}

// Takes up the run after step, adds a start and the steps to last. Each takes 1/8 s.
static void go_on(rfa_run **run, const char *path, int64_t step, double rate, int64_t last)
{
    const rfa_start_record record = start_record(step, rate);
    check_ok(rfa_run_create(run, path, config_text, step > 0 ? step : -1, false));
    check_ok(rfa_run_add_start(*run, &record));
    check_ok(rfa_run_write(*run));
    add(*run, step + 1, last, 5);
}

static void check_work(const rfa_run *run, int64_t steps, double sgemm_flops)
{
    double seconds = -1, flops = -1;
    check(rfa_run_work(run, &seconds, &flops) == steps);
    check(seconds == 0.125 * (double)steps && flops == sgemm_flops);
}

// Each start is on record, and its steps count at its own rate; a start whose steps are gone is
// not.
static void test_starts(void **state)
{
    (void)state;
    const char *path = in_scratch("starts.h5");
    rfa_run *run = NULL;
    rfa_run_view view;
    check_ok(rfa_run_create(&run, path, config_text, -1, true));
    check_work(run, 0, 0);
    add(run, 1, 4, 5);
    check_work(run, 4, 0); // no start, no rate
    rfa_run_destroy(&run);
    check(unlink(path) == 0 || !is_there(path));
    unlink(in_scratch("starts.jsonl"));

    go_on(&run, path, 0, 64, 10);
    check_work(run, 10, 0.125 * 10 * 64);
    rfa_run_destroy(&run);
    go_on(&run, path, 6, 128, 11);
    check_work(run, 11, 0.125 * (6 * 64 + 5 * 128));
    rfa_run_destroy(&run);
    go_on(&run, path, 6, 256, 7); // killed before its first checkpoint
    check_work(run, 7, 0.125 * (6 * 64 + 256));
    check_ok(rfa_run_write(run));
    rfa_run_destroy(&run);

    check_ok(rfa_run_read(&view, path));
    check(view.starts == 3 && view.steps == 7);
    for (int64_t i = 0; i < view.starts; i++) {
        const rfa_start_record want = start_record(i ? 6 : 0, 64 << i), *have = &view.start[i];
        check(have->step == want.step && have->ranks == want.ranks && have->threads == 3);
        check(have->sgemm_flops_per_second == want.sgemm_flops_per_second);
        check(strcmp(have->started, want.started) == 0 && strcmp(have->hosts, want.hosts) == 0);
        check(strcmp(have->commit, want.commit) == 0);
    }
    rfa_run_view_free(&view);

    go_on(&run, path, 3, 512, 8);
    check_work(run, 8, 0.125 * (3 * 64 + 5 * 512));
    check_ok(rfa_run_write(run));
    rfa_run_destroy(&run);
    check_ok(rfa_run_read(&view, path));
    check(view.starts == 2 && view.start[1].step == 3);
    rfa_run_view_free(&view);
}

static void test_many_steps(void **state)
{
    (void)state;
    enum { STEPS = 100000, QUARTER = STEPS / 4 };
    const char *path = in_scratch("many.h5");
    const int64_t before = rfa_mem_now();
    rfa_run *run = NULL;
    check_ok(rfa_run_create(&run, path, config_text, -1, true));
    double quarter[4];
    for (int q = 0; q < 4; q++) {
        const clock_t begin = clock(); // of the processor: others may be busy
        for (int64_t n = 1 + (int64_t)q * QUARTER; n <= (int64_t)(q + 1) * QUARTER; n++) {
            const rfa_step_record record = step_record(n);
            if (rfa_run_add_step(run, &record) != RFA_OK) {
                check(false);
            }
        }
        quarter[q] = (double)(clock() - begin) / CLOCKS_PER_SEC;
    }
    const double lines = (double)size_of(in_scratch("many.jsonl"));
    double begin = rfa_now();
    check_file(path, STEPS, STEPS + 1, true);
    const double merge = rfa_now() - begin;
    begin = rfa_now();
    check_ok(rfa_run_write(run));
    const double write = rfa_now() - begin;
    const double values = 9.0 * STEPS, bytes = (double)size_of(path);
    const int64_t held = rfa_mem_now() - before;
    print_message("%d steps: %.1f us a line at first, %.1f at last; %.0f bytes a line; merged in "
                  "%.2f s, written in %.2f s; %.2f bytes a value in the file, %.1f MiB held\n",
                  STEPS, 1e6 * quarter[0] / QUARTER, 1e6 * quarter[3] / QUARTER, lines / STEPS,
                  merge, write, bytes / values, (double)held / 1048576.0);
    check(bytes / values < 1.05 * 8); // below twice the 8 bytes that a value has
    check(quarter[3] < 4 * quarter[0]);
    check(held < 2 * STEPS * (int64_t)sizeof(rfa_step_record) + 65536);
    check_file(path, STEPS, STEPS + 1, false);
    rfa_run_destroy(&run);
    check(rfa_mem_now() == before);
}

// What people see in Python: types, scales, units.
static void test_python(void **state)
{
    (void)state;
    const char *path = in_scratch("python.h5");
    rfa_run *run = NULL;
    check_ok(rfa_run_create(&run, path, config_text, -1, true));
    rfa_run_set_text(run, "hosts", "kn\xc3\xb6");
    rfa_run_set_number(run, "ranks", 4);
    rfa_run_set_flag(run, "dirty", false);
    add(run, 1, 40, 10);
    const rfa_evaluation_record test = evaluation_record(40);
    check_ok(rfa_run_set_test(run, &test));
    copy_file(in_scratch("python.jsonl"), in_scratch("python.kept"));
    check_ok(rfa_run_write(run));
    rfa_run_destroy(&run);
    static const char script[] =
        "import sys, json, h5py, numpy as np\n"
        "f = h5py.File(sys.argv[1])\n"
        "a = dict(f.attrs); c = dict(f['config'].attrs)\n"
        "assert a['schema'] == 'rfa run 1' and a['state'] == 'running', a\n"
        "assert a['hosts'] == 'kn\\u00f6' and type(a['hosts']) is str\n"
        "assert a['ranks'] == 4 and a['ranks'].dtype == '<i8'\n"
        "assert a['dirty'].dtype == bool and not a['dirty']\n"
        "assert c['text'].startswith('data:') and c['data.file'] == 'data/\\u00fc.h5'\n"
        "assert c['data.max_length'] == 2000 and c['data.max_length'].dtype == '<i8'\n"
        "assert c['attention.causal'].dtype == bool and c['attention.causal']\n"
        "assert c['attention.bandwidth'] == 1.5 and c['train.rate'] == 1e-3\n"
        "assert c['train.rate'].dtype == '<f8' and c['train.seed'] == 9007199254740993\n"
        "assert c['train.name'] == '12', c\n"
        "def look(name, d):\n"
        "    if not isinstance(d, h5py.Dataset): return\n"
        "    assert type(d.attrs['units']) is str and type(d.attrs['long_name']) is str, name\n"
        "    assert d.dtype.kind == 'O' or d.dtype.byteorder in '<=', name\n"
        "    if name.endswith('step') or name == 'class':\n"
        "        assert h5py.h5ds.is_scale(d.id), name\n"
        "    else:\n"
        "        assert d.dims[0].keys() == ['step'], (name, d.dims[0].keys())\n"
        "        assert d.dims[0]['step'].name == d.parent.name + '/step'\n"
        "f.visititems(look)\n"
        "s = f['steps']; e = f['evaluations']\n"
        "assert (s['step'][:] == np.arange(1, 41)).all() and s['digest'].dtype == '<u8'\n"
        "assert s['digest'][1] == 2 * 0x9e3779b97f4a7c15 % 2**64\n"
        "assert s['loss'][7] == 1 / 3 and np.isnan(s['loss'][0]) and np.isinf(s['loss'][1])\n"
        "assert s['seconds'].attrs['units'] == 's' and s['loss'].attrs['units'] == 'nat'\n"
        "assert list(e['split'].asstr()) == ['validation'] * 4\n"
        "assert (e['accuracy'][:] == 0.8).all() and e['confusion'].shape == (4, 3, 3)\n"
        "assert e['confusion'].dims[1].keys() == ['class'] and e['confusion'][3, 1, 0] == 2\n"
        "assert e['confusion'].dims[2][0].name == '/class'\n"
        "assert f['test/accuracy'][0] == 0.8 and f['test/step'][0] == 40\n"
        "lines = [json.loads(x) for x in open(sys.argv[2])]\n"
        "assert len(lines) == 45 and lines[0]['loss'] is None and lines[7]['loss'] == 1 / 3\n"
        "assert lines[0]['digest'] == '9e3779b97f4a7c15' and lines[-1]['test'] == 'validation'\n"
        "assert lines[10]['evaluation'] == 'validation' and lines[10]['confusion'][1][1] == 7\n";
    spill(in_scratch("look.py"), script, (long)strlen(script));
    char command[2048];
    snprintf(command, sizeof command, "/usr/bin/python3 %s %s %s", in_scratch("look.py"), path,
             in_scratch("python.kept"));
    check(system(command) == 0); // NOLINT(cert-env33-c): our own path
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_empty_run),
        cmocka_unit_test(test_nothing_is_overwritten),
        cmocka_unit_test(test_starts),
        cmocka_unit_test(test_many_steps),
        cmocka_unit_test(test_python),
    };
    scratch_begin("runfile");
    const int failed = test_main(tests);
    scratch_end();
    return failed;
}
