#!/usr/bin/env bash
exec "$(dirname "$0")/../compat/setup.sh"
