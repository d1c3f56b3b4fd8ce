/* Lua scripts that Redis runs. scripts/<name>.lua becomes the function mr_script_<name>; each file
 * documents its keys, arguments and answers. Comment lines are not sent to Redis. */
#pragma once

#include "base/str.h"

struct mr_str mr_script_channel_append(void);
struct mr_str mr_script_channel_read(void);
struct mr_str mr_script_directory_name(void);
struct mr_str mr_script_directory_names(void);
struct mr_str mr_script_directory_unname(void);
struct mr_str mr_script_directory_unplace(void);
struct mr_str mr_script_journal_append(void);
struct mr_str mr_script_journal_base(void);
struct mr_str mr_script_journal_claim(void);
struct mr_str mr_script_queue_close(void);
struct mr_str mr_script_queue_create(void);
struct mr_str mr_script_queue_delete(void);
struct mr_str mr_script_queue_get(void);
struct mr_str mr_script_queue_list(void);
struct mr_str mr_script_queue_put(void);
struct mr_str mr_script_queue_released(void);
struct mr_str mr_script_queue_settle(void);
struct mr_str mr_script_queue_take(void);
struct mr_str mr_script_trace_write(void);
struct mr_str mr_script_trainer_epoch(void);
struct mr_str mr_script_trainer_record(void);
