#!/usr/bin/env bash
# bash test_tipc/prepare.sh CONFIG MODE
#
# Makes sure that a config can be read and that its data is there, and stops at the first thing
# that is not. Laid down by `tipcheck init`; add what else your model needs at the end.

source "$(dirname "${BASH_SOURCE[0]}")/common_func.sh"
read_arguments "$@"
find_tipcheck
set -e

problems=$("${TIPCHECK[@]}" lint "${FILENAME}") || stop "${problems}" "$?"

data_line=11
case "$(sed -n 11p "${FILENAME}")" in
    trainer:*) data_line=7 ;; # the 20 lines of a PTQ config
esac
data=$(func_parser_value "$(sed -n "${data_line}p" "${FILENAME}")")
if [ "${data}" = null ] || [ -e "${data}" ]; then
    echo "data: ${data}"
elif [ -f "${data%/}.tar" ]; then
    echo "unpacking ${data%/}.tar"
    tar -xf "${data%/}.tar" -C "$(dirname "${data%/}")"
else
    stop "neither ${data} nor ${data%/}.tar exists; type: tipcheck lite-data SOURCE ${data%/} --train 16 --val 16" 1
fi

weights=$(func_parser_value "$(sed -n 24p "${FILENAME}")")
if [ "${MODE}" = whole_infer ] && [ "${weights}" != null ] && [ ! -e "${weights}" ]; then
    stop "${weights} does not exist; ${MODE} exports these weights (line 24 of the config)" 1
fi
echo "ready: ${FILENAME} ${MODE}"
