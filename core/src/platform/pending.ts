/** Why a row is pending while the engine runs: hosts say it in the answer of a write, the engine in every later read. */
export const waitsForReload = 'Waits for a reload';
