/* An intrusive circular doubly linked list: the list node is a member of the item. */
#pragma once

#include "base/defs.h"

#include <stdbool.h>

struct mr_list {
    struct mr_list *next;
    struct mr_list *prev;
};

/* Makes `l` point to itself. A head that points to itself is an empty list. A node that points to
 * itself is on no list. */
static inline void mr_list_init(struct mr_list *l)
{
    l->next = l->prev = l;
}

static inline bool mr_list_is_empty(const struct mr_list *head)
{
    return head->next == head;
}

static inline bool mr_list_is_linked(const struct mr_list *node)
{
    return node->next && node->next != node;
}

static inline void mr_list_add_tail(struct mr_list *head, struct mr_list *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}

static inline void mr_list_add_head(struct mr_list *head, struct mr_list *node)
{
    node->next = head->next;
    node->prev = head;
    head->next->prev = node;
    head->next = node;
}

/* Removes a node from its list. Does nothing to a node that is on no list, if mr_list_init has
 * initialised it. */
static inline void mr_list_remove(struct mr_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    mr_list_init(node);
}

static inline struct mr_list *mr_list_pop_head(struct mr_list *head) /* NULL: the list is empty */
{
    if (mr_list_is_empty(head)) return NULL;
    struct mr_list *node = head->next;
    mr_list_remove(node);
    return node;
}

#define MR_LIST_ITEM(node, type, member) MR_CONTAINER_OF(node, type, member)

/* Walks a list. The body may remove the current item, and no other. */
#define MR_LIST_EACH(node, head)                                                                   \
    for (struct mr_list *node = (head)->next, *node##_next_ = node->next; node != (head);          \
         node = node##_next_, node##_next_ = node->next)
