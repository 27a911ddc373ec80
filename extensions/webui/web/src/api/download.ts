/** Files from the panel to the user's disk. */
import { address, call, type CallOptions, exchange } from './client.ts';

/** Downloads by a link of the browser: a ticket stands for the token in it. @throws ApiFailure */
export async function downloadFrom(path: string, query: CallOptions['query'] = {}): Promise<void> {
    const target = address(path, query);
    const { data } = await call<{ ticket: string }>('POST', '/api/auth/tickets', { body: { path: target } });
    // A link that downloads never leads away from the panel, whatever the answer is.
    const link = document.createElement('a');
    link.href = address(path, { ...query, ticket: data.ticket });
    link.download = '';
    link.click();
}

/**
 * Downloads a small file by a request of the page: it asks for the password again where the panel wants that, which a link of the browser
 * cannot. @throws ApiFailure
 */
export async function downloadHere(path: string, query: CallOptions['query'] = {}): Promise<void> {
    const response = await exchange('GET', address(path, query));
    const name = /filename="([^"]+)"/.exec(response.headers.get('content-disposition') ?? '')?.[1];
    saveText(name ?? 'download', await response.text(), 'application/octet-stream');
}

/** Saves a text that is already here. */
export function saveText(name: string, text: string, type = 'application/json'): void {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
