/** What whoever takes or restores a snapshot may have to catch. */

/** Why bytes are no snapshot that can be restored here, or why there can be none of a machine. For a person to read. */
export class SnapshotError extends Error {
  override readonly name = 'SnapshotError';
}
