/* A terminal that is drawn on in place: the alternate screen, without echo and cursor, and what it
 * was before when this is closed, however the command ends. Signals come as words, not as ends:
 * SIGINT, SIGTERM and SIGHUP leave (and end the process when the screen is closed, as they would
 * have), SIGTSTP gives the terminal back until the process goes on, SIGWINCH asks for a new
 * picture. */
#pragma once

#include "base/str.h"

#include <stdbool.h>

struct mr_screen; /* one a process, owned by its main thread */

struct mr_screen *mr_screen_open(void); /* NULL: stdout is no terminal */
void mr_screen_close(struct mr_screen **screen);

/* Lines for this many columns fit; there are this many of them. */
unsigned mr_screen_columns(const struct mr_screen *s);
/* The whole picture: lines that end with '\n'. What does not fit is cut. */
void mr_screen_draw(struct mr_screen *s, struct mr_str text);

enum mr_screen_word {
    MR_SCREEN_NONE,
    MR_SCREEN_REDRAW, /* the terminal has another size, or was somebody else's */
    MR_SCREEN_LEAVE,  /* the key q, or a signal */
};
int mr_screen_fd(const struct mr_screen *s); /* readable: something for mr_screen_take */
enum mr_screen_word mr_screen_take(struct mr_screen *s); /* never waits */
