/* Imports CSV (RFC 4180, the first line names the fields) into a table, completely or not at all, with its caller's rights.
   TABLE in its environment names the table. With OWNER_FIELD, each record belongs to the caller. */
#include <stdio.h>

#include "tenantry.h"

struct text {
  char *bytes;
  size_t length, room;
};

static void append(struct text *to, const char *bytes, size_t length) {
  if (to->length + length + 1 > to->room) {
    to->room = 2 * (to->length + length + 1);
    to->bytes = realloc(to->bytes, to->room);
    if (to->bytes == NULL) abort();
  }
  memcpy(to->bytes + to->length, bytes, length);
  to->length += length;
  to->bytes[to->length] = '\0';
}

static void append_text(struct text *to, const char *text) { append(to, text, strlen(text)); }

static void append_json(struct text *to, const char *bytes, size_t length) {
  append_text(to, "\"");
  for (size_t n = 0; n < length; n++) {
    unsigned char one = (unsigned char)bytes[n];
    char escaped[8];
    if (one == '"' || one == '\\') append(to, (char[]){'\\', (char)one}, 2);
    else if (one < 0x20) append(to, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", one));
    else append(to, &bytes[n], 1);
  }
  append_text(to, "\"");
}

static void append_identifier(struct text *to, const char *bytes, size_t length) {
  append_text(to, "\"");
  for (size_t n = 0; n < length; n++) {
    if (bytes[n] == '"') append_text(to, "\"");
    append(to, &bytes[n], 1);
  }
  append_text(to, "\"");
}

enum after { FIELD, LINE, END };

/* Reads one field of the text into `field`, and returns what follows it. */
static enum after read_field(const char **at, const char *end, struct text *field) {
  field->length = 0;
  append(field, "", 0);
  bool quoted = *at < end && **at == '"';
  if (quoted) (*at)++;
  for (; *at < end; (*at)++) {
    if (quoted && **at == '"') {
      if (*at + 1 < end && (*at)[1] == '"') (*at)++;
      else {
        quoted = false;
        continue;
      }
    } else if (!quoted && (**at == ',' || **at == '\n' || (**at == '\r' && *at + 1 < end && (*at)[1] == '\n'))) {
      char sign = **at;
      *at += sign == '\r' ? 2 : 1;
      return sign == ',' ? FIELD : *at < end ? LINE : END;
    }
    append(field, *at, 1);
  }
  return END;
}

static int reject(const char *error) {
  printf("Status: 422\nContent-Type: application/json\n\n%s", error);
  return 0;
}

int main(void) {
  struct text csv = {0}, names = {0}, records = {0}, field = {0}, columns[256] = {{0}};
  size_t count = 0, rows = 0;
  /* The stack has no more than 64 KB. */
  static char chunk[65536];
  for (size_t got; (got = fread(chunk, 1, sizeof chunk, stdin)) > 0;) append(&csv, chunk, got);
  if (csv.length == 0) return reject("{\"message\":\"The input is empty.\"}");

  const char *at = csv.bytes, *end = csv.bytes + csv.length;
  enum after after = FIELD;
  while (after == FIELD) {
    if (count == sizeof columns / sizeof *columns) return reject("{\"message\":\"The first line has too many fields.\"}");
    after = read_field(&at, end, &columns[count]);
    if (count > 0) append_text(&names, ", ");
    append_identifier(&names, columns[count].bytes, columns[count].length);
    count++;
  }
  append_text(&records, "[");
  while (after != END) {
    append_text(&records, rows++ == 0 ? "{" : ",{");
    size_t n = 0;
    do {
      if (n == count) return reject("{\"message\":\"A line has more fields than the first line.\"}");
      after = read_field(&at, end, &field);
      if (n > 0) append_text(&records, ",");
      append_json(&records, columns[n].bytes, columns[n].length);
      append_text(&records, ":");
      if (field.length == 0) append_text(&records, "null");
      else append_json(&records, field.bytes, field.length);
      n++;
    } while (after == FIELD);
    append_text(&records, "}");
  }
  append_text(&records, "]");

  struct tenantry_response table = tenantry_env("TABLE"), owner = tenantry_env("OWNER_FIELD"), user = tenantry_env("TENANTRY_USER_ID");
  struct text sql = {0}, parameters = {0};
  append_text(&sql, "insert into ");
  append_identifier(&sql, table.bytes, table.length);
  append_text(&sql, " (");
  append_text(&sql, names.bytes);
  if (owner.ok) {
    append_text(&sql, ", ");
    append_identifier(&sql, owner.bytes, owner.length);
  }
  append_text(&sql, ") select ");
  append_text(&sql, names.bytes);
  if (owner.ok) append_text(&sql, ", $2");
  /* The types of the table's columns decide how the texts are converted. */
  append_text(&sql, " from json_populate_recordset(null::");
  append_identifier(&sql, table.bytes, table.length);
  append_text(&sql, ", $1)");
  append_text(&parameters, "[");
  append_json(&parameters, records.bytes, records.length);
  if (owner.ok) {
    append_text(&parameters, ",");
    if (user.ok) append_json(&parameters, user.bytes, user.length);
    else append_text(&parameters, "null");
  }
  append_text(&parameters, "]");
  struct tenantry_response response = tenantry_query(sql.bytes, parameters.bytes);
  if (!response.ok) return reject(response.bytes);
  char line[64];
  snprintf(line, sizeof line, "%zu records were imported.", rows);
  tenantry_log(TENANTRY_INFO, line);
  printf("{\"imported\":%zu}", rows);
  return 0;
}
