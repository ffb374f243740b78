/** What the exit codes of all commands mean, in one place. `check` has its own: 1 for warnings with --strict, 2 for errors. */

/** As asked. */
export const EXIT_OK = 0;
/** The proxy refused, and said why; or what was waited for did not come. */
export const EXIT_REFUSED = 1;
/** The command line is not right. */
export const EXIT_USAGE = 2;
/** No proxy answers at the socket, or it went away meanwhile. */
export const EXIT_UNREACHABLE = 3;
/** A bug in this program: supervisors may tell it from a refusal to start. */
export const EXIT_BUG = 70;
