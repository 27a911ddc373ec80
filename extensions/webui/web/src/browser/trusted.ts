/** The one trusted-types policy of the pages: it lets only scripts of the pages themselves through. */
interface Policy {
    createScriptURL(url: string): unknown;
}
interface Factory {
    createPolicy(name: string, rules: { createScriptURL(url: string): string }): Policy;
}

const factory = (globalThis as { trustedTypes?: Factory }).trustedTypes;
const policy = factory?.createPolicy('portico', {
    createScriptURL(url) {
        if (new URL(url, location.href).origin !== location.origin) {
            throw new TypeError('Scripts come from the panel alone');
        }
        return url;
    }
});

/** Starts a module worker from a file of the pages. */
export function startWorker(url: string): Worker {
    // The types of the DOM know no trusted URL; the constructor takes one.
    return new Worker((policy?.createScriptURL(url) ?? url) as string, { type: 'module' });
}
