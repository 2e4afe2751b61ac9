/* A Python module below lib whose run path was made for lib itself. */
extern const char *sqlite3_libversion(void);

const char *rocpd_sqlite(void) { return sqlite3_libversion(); }
