/* The host calls for functions in C: copy this file next to your own (docs/functions.md, "Host calls").
   The caller frees the bytes of a response. They end with a NUL that the length does not count. */
#ifndef TENANTRY_H
#define TENANTRY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TENANTRY_IMPORT(name) __attribute__((import_module("tenantry"), import_name(#name)))

TENANTRY_IMPORT(log) void tenantry_import_log(int32_t level, const char *text, size_t length);
TENANTRY_IMPORT(env) int32_t tenantry_import_env(const char *name, size_t length);
TENANTRY_IMPORT(db_query) int32_t tenantry_import_db_query(const char *sql, size_t length, const char *parameters, size_t parameters_length);
TENANTRY_IMPORT(storage_get) int32_t tenantry_import_storage_get(const char *path, size_t length);
TENANTRY_IMPORT(storage_put)
int32_t tenantry_import_storage_put(const char *path, size_t length, const char *type, size_t type_length, const void *bytes, size_t bytes_length);
TENANTRY_IMPORT(storage_delete) int32_t tenantry_import_storage_delete(const char *path, size_t length);
TENANTRY_IMPORT(http_fetch) int32_t tenantry_import_http_fetch(const char *request, size_t length, const void *body, size_t body_length);
TENANTRY_IMPORT(take) int32_t tenantry_import_take(void *at, size_t size);

enum tenantry_level { TENANTRY_DEBUG, TENANTRY_INFO, TENANTRY_WARN, TENANTRY_ERROR };

/* The response to a call. If ok is false, the bytes are an error: {"code":…,"message":…}. */
struct tenantry_response {
  bool ok;
  size_t length;
  char *bytes;
};

static inline struct tenantry_response tenantry_taken(int32_t result) {
  struct tenantry_response response = {.ok = result >= 0, .length = (size_t)(result >= 0 ? result : -(result + 1))};
  response.bytes = malloc(response.length + 1);
  if (response.bytes == NULL) abort();
  tenantry_import_take(response.bytes, response.length);
  response.bytes[response.length] = '\0';
  return response;
}

static inline void tenantry_log(enum tenantry_level level, const char *line) {
  tenantry_import_log(level, line, strlen(line));
  tenantry_import_log(level, "\n", 1);
}

static inline struct tenantry_response tenantry_env(const char *name) { return tenantry_taken(tenantry_import_env(name, strlen(name))); }

/* Runs an SQL statement. parameters: a JSON array for $1, $2 …, or "". Returns {"rows":[…],"count":n}. */
static inline struct tenantry_response tenantry_query(const char *sql, const char *parameters) {
  return tenantry_taken(tenantry_import_db_query(sql, strlen(sql), parameters, strlen(parameters)));
}

/* Reads a file. path: bucket/path/in/it. */
static inline struct tenantry_response tenantry_get(const char *path) { return tenantry_taken(tenantry_import_storage_get(path, strlen(path))); }

static inline struct tenantry_response tenantry_put(const char *path, const char *type, const void *bytes, size_t length) {
  return tenantry_taken(tenantry_import_storage_put(path, strlen(path), type, strlen(type), bytes, length));
}

static inline struct tenantry_response tenantry_delete(const char *path) { return tenantry_taken(tenantry_import_storage_delete(path, strlen(path))); }

/* Sends an HTTP request. request: {"method":…,"url":…,"headers":{…}}. Returns {"status":…,"headers":{…}}, a newline, and the body. */
static inline struct tenantry_response tenantry_fetch(const char *request, const void *body, size_t length) {
  return tenantry_taken(tenantry_import_http_fetch(request, strlen(request), body, length));
}

#endif
