/* Draws on a terminal in place: on the alternate screen, without echo and cursor. Closing restores
 * the terminal.
 *
 * Signals become events, so that the terminal is restored however the command ends. SIGINT, SIGTERM
 * and SIGHUP become MR_SCREEN_LEAVE, and end the process when the screen is closed. SIGTSTP
 * restores the terminal and stops the process until SIGCONT. SIGTSTP and SIGWINCH become
 * MR_SCREEN_REDRAW. */
#pragma once

#include "base/str.h"

#include <stdbool.h>

struct mr_screen; /* a process has at most one screen, which its main thread owns */

struct mr_screen *mr_screen_open(void); /* NULL: stdout is not a terminal */
void mr_screen_close(struct mr_screen **screen);

unsigned mr_screen_columns(const struct mr_screen *s);
/* Draws the whole screen. Each line of `text` ends with '\n'. Lines and columns that do not fit are
 * cut. */
void mr_screen_draw(struct mr_screen *s, struct mr_str text);

enum mr_screen_event {
    MR_SCREEN_NONE,
    /* The terminal has a new size, or another program has written to it. */
    MR_SCREEN_REDRAW,
    MR_SCREEN_LEAVE, /* the key q or a signal came */
};
/* The descriptor is readable when mr_screen_take has an event. */
int mr_screen_fd(const struct mr_screen *s);
enum mr_screen_event mr_screen_take(struct mr_screen *s); /* never waits */
