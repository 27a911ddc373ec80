/** The kit for a plugin's tests: an in-memory host with fakes for every door, faults on demand, and the real boundary. */
export {};
