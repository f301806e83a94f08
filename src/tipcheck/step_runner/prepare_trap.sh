# Sourced by bash before a prepare.sh that is run strictly: ends the script at the first command that
# fails where nothing looks at the failure, and writes down which one it was.
#
# Not `set -e`, for two reasons. Scripts like these were written to be run again, and some of their
# commands fail only because their work was done before (the link is there, the download too); the
# script goes on after those, and they are written down as well. And `cd data && tar xf a.tar && cd ..`
# is how they unpack: bash takes every command of it but the last for a condition and stays silent.
unset BASH_ENV

_tipcheck_line=0 _tipcheck_file='' _tipcheck_command=''
# A condition, or something that may fail on purpose.
_tipcheck_conditions='^[[:space:]]*(if|elif|while|until|!|\[|test)[[:space:]]|\|\||\(\('
_tipcheck_questions='^(\[|\[\[|test|grep|egrep|fgrep|which|command|type|hash|ls|diff|cmp|pgrep|return|[A-Za-z_]+=.*)([[:space:]]|$)'
_tipcheck_subshell='(^|[;&|[:space:]])\('

# Whether the last word of a command, such as ./data/${name}, is something that exists.
_tipcheck_is_there() {
    local word=${1##* } target
    [[ ${word} =~ ^[][A-Za-z0-9_./\$\{\}-]+$ ]] || return 1 # nothing that bash would execute
    eval "target=\"${word}\"" 2> /dev/null
    [[ -e ${target} || -L ${target} ]]
}

_tipcheck_failed() {
    local status=$1 line=$2 file=$3 command=$4 verdict=stop
    case "${status}:${command}" in
        1:ln\ * | 1:mkdir\ *) _tipcheck_is_there "${command}" && verdict=done-before ;;
        1:wget\ *-nc* | 1:wget\ *--no-clobber*) verdict=done-before ;; # 4 and 8 are real failures
    esac
    printf '%s\0%s\0%s\0%s\0%s\0' "${verdict}" "${status}" "${line}" "${file}" "${command}" \
        >> "${TIPCHECK_PREPARE_REPORT}"
    [ "${verdict}" = done-before ] || exit "${status}"
}

# Before each command: whether the one before it failed in a chain of && that nothing looks at.
# Pipelines and subshells are not seen to start, so what comes after one of them tells nothing.
_tipcheck_before() {
    local status=$1 piped=$2 text between=''
    if [[ ${status} != 0 && ${piped} == 1 && ${BASH_SUBSHELL} == 0 && -f ${_tipcheck_file} ]] &&
        [[ ! ${_tipcheck_command} =~ ${_tipcheck_questions} ]]; then
        text=$(sed -n "${_tipcheck_line}p" "${_tipcheck_file}")
        if [[ $4 == "${_tipcheck_file}" && $3 -gt ${_tipcheck_line} ]]; then
            between=$(sed -n "$((_tipcheck_line + 1)),$3p" "$4")
        fi
        if [[ ${text} == *'&&'* && ! ${text} =~ ${_tipcheck_conditions} ]] &&
            [[ ! ${between} =~ ${_tipcheck_subshell} ]]; then
            _tipcheck_failed "${status}" "${_tipcheck_line}" "${_tipcheck_file}" "${_tipcheck_command}"
        fi
    fi
    _tipcheck_line=$3 _tipcheck_file=$4 _tipcheck_command=$5
}

set -ET
trap '_tipcheck_failed "$?" "${LINENO}" "${BASH_SOURCE[0]}" "${BASH_COMMAND}"' ERR
trap '_tipcheck_before "$?" "${#PIPESTATUS[@]}" "${LINENO}" "${BASH_SOURCE[0]}" "${BASH_COMMAND}"' DEBUG
