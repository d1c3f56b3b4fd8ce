#!/bin/sh
# Installs the fit of examples/glm.json once as the template `glm`, and runs it by that name with other
# parameters each time: every solver, family and penalty that it takes, in 4 and in 7 chunks.
#
#   examples/glm-template.sh [http://127.0.0.1:8470] [rows in a chunk]
set -eu
url=${1:-http://127.0.0.1:8470}
rows=${2:-2000}
curl -sSf --json @"$(dirname "$0")/glm.json" "$url/v1/templates?name=glm" >/dev/null

field() { # of JSON on one line: its number, text or first number of a list
    sed "s/.*\"$1\": *\[\{0,1\}\"\{0,1\}\([^],\"}]*\).*/\1/"
}

fit() { # family, solver, penalty, chunks
    job=$(curl -sSf --json "{\"params\": {\"family\": \"$1\", \"solver\": \"$2\", \"penalty\": \"$3\", \"chunks\": $4,
        \"rows\": $rows, \"precondition\": true}}" "$url/v1/templates/glm:instantiate?wait_s=60" | tr -d '\n')
    summary=$(curl -sSf "$url/v1/jobs/$(echo "$job" | field id)/results/summary" | tr -d '\n')
    printf '%-9s %-9s %-11s %6s %6s %12s %20s\n' "$1" "$2" "$3" "$4" "$(echo "$summary" | field evaluations)" \
        "$(echo "$summary" | field converged)" "$(echo "$summary" | field coef)"
}

printf '%-9s %-9s %-11s %6s %6s %12s %20s\n' family solver penalty chunks looks converged 'first coefficient'
for family in logistic normal poisson; do
    for penalty in none l2 l1 elasticnet; do
        for solver in newton lbfgs gd proximal admm; do
            case $penalty-$solver in l1-[nlg]* | elasticnet-[nlg]*) continue ;; esac
            fit $family $solver $penalty 4
        done
    done
    fit $family admm l1 7
done
