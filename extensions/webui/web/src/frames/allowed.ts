/** Which operations a page of a plugin may call: those of the plugin, and those that it uses. */
import { fetchDocument } from '../api/document.ts';
import { ApiFailure } from '../api/failure.ts';
import { type Operation, operationsOf } from '../generated/operations.ts';
import type { BroughtPage } from '../schema/document.ts';

/** Finds the operation; null when there is none, or the page may not call it. */
export async function findAllowed(
    plugin: string,
    { uses }: Pick<BroughtPage, 'uses'>,
    id: string
): Promise<Operation | null> {
    if (!id.startsWith(`${plugin}.`) && !uses.includes(id)) {
        return null;
    }
    const tag = id.slice(0, id.indexOf('.'));
    return (await inTag(tag, id)) ?? (tag === plugin ? null : await anywhere(id));
}

/** Most ids begin with their tag, so a small part of the document says what they are. */
async function inTag(tag: string, id: string): Promise<Operation | null> {
    try {
        return operationsOf(await fetchDocument(tag), tag).find((each) => each.id === id) ?? null;
    } catch (error) {
        if (error instanceof ApiFailure && error.status === 404) {
            return null;
        }
        throw error;
    }
}

async function anywhere(id: string): Promise<Operation | null> {
    const whole = await fetchDocument(null);
    return whole.tags.flatMap(({ name }) => operationsOf(whole, name)).find((each) => each.id === id) ?? null;
}
