#!/usr/bin/env bash
# rfa help: every verb, every option of the parsers and every key stands in the manual and in the
# completion; the page is troff without warnings; the completion completes; both are installed.
. "$SOURCE/tests/cli/lib.sh"
fresh

run 0 --help
expect_code 0
verbs=$(sed -nE 's/^  ([a-z]+) +[a-z].*/\1/p' "$out" | grep -vE '^(rfa|mpirun)$')
[ "$(wc -w <<<"$verbs")" -ge 9 ] || fail "too few verbs"
expect_out '^examples:$'
run 0 train --help-config
keys=$(awk '/^[a-z]+:$/ { section = substr($1, 1, length($1) - 1) }
    /^  [a-z_0-9]+: / { print section "." substr($1, 1, length($1) - 1) }' "$out")
[ "$(wc -w <<<"$keys")" -ge 60 ] || fail "too few keys"
# Options as the parsers know them, not as the help says.
options=$(cat "$SOURCE"/src/cli/*.c | { grep -oE '\{"[a-z][a-z-]+", (no|required)_argument' || true; } |
    cut -d '"' -f 2 | sort -u)
[ "$(wc -w <<<"$options")" -ge 15 ] || fail "too few options"
run 0 data --help
tasks=$(sed -nE 's/^  ([a-z]+) .*/\1/p' "$out" | grep -v '^rfa$')

run 2 help --man
expect_code 0
cp "$out" rfa.1
run 0 help --bash
expect_code 0
cp "$out" rfa.bash
groff -ww -man -Tutf8 rfa.1 >page 2>warnings || fail "groff: $(cat warnings)"
[ ! -s warnings ] || fail "groff warns: $(head -n 3 warnings)"
sed -i 's/.\x08//g; s/\x1b\[[0-9;]*m//g' page
for verb in $verbs; do
    grep -qE "^ *rfa $verb$" page || fail "verb $verb is not in the page"
    # What the verb says itself stands there whole.
    run 0 "$verb" --help
    while read -r line; do
        grep -qF -- "$line" page || fail "of $verb --help is not in the page: $line"
    done <"$out"
    run 0 help "$verb"
    expect_code 0
    [ -s "$out" ] || fail "rfa help $verb says nothing"
done
for option in $options; do
    grep -qE -- "--$option([^a-z-]|$)" page || fail "option --$option is not in the page"
    grep -qE -- " --$option " rfa.bash || fail "option --$option is not completed"
done
for key in $keys; do
    grep -qE "^ *${key#*.}: " page || fail "key $key is not in the page"
done
for line in "help nonsense" "help --man --bash" "help train listops" "help --nonsense"; do
    # shellcheck disable=SC2086
    run 0 $line
    expect_code 2
done

# complete WORD...: what a tab after the last word offers, one a line.
complete_words()
{
    bash -c 'source ./rfa.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rfa
        printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}
offers() # WORD... -- EXPECTED
{
    local words=("${@:1:$#-2}") wanted=${*: -1}
    complete_words "${words[@]}" | grep -xF -- "$wanted" >/dev/null || fail "'${words[*]}' offers no $wanted"
}
touch some.yaml "with blank.h5"
for verb in $verbs; do
    offers rfa "${verb:0:2}" -- "$verb"
done
for task in $tasks; do
    offers rfa data "${task:0:2}" -- "$task"
done
for key in $keys; do
    offers rfa train some.yaml --set "${key%?}" -- "$key="
done
offers rfa tr -- train
offers rfa data listops --tra -- --train
offers rfa train so -- some.yaml
offers rfa inspect with -- "with blank.h5"
offers rfa train --out with -- "with blank.h5"
offers rfa eval x.h5 --split v -- val
offers rfa help da -- data
[ -z "$(complete_words rfa train --ten)" ] || fail "train has an option of another verb"
[ -z "$(complete_words rfa doctor --seconds so)" ] || fail "a number is completed by files"

DESTDIR=$PWD/tree cmake --install "$(dirname "$RFA")" --prefix /usr >log 2>&1 || fail "$(cat log)"
cmp rfa.1 tree/usr/share/man/man1/rfa.1
cmp rfa.bash tree/usr/share/bash-completion/completions/rfa
[ -x tree/usr/bin/rfa ] || fail "no program installed"

# No colours at all, so NO_COLOR has nothing to switch off.
for verb in $verbs; do
    run 0 "$verb" --help
    ! grep -q $'\x1b' "$out" || fail "$verb --help has control sequences"
done
