/** Templates of projects that signed sources offer. */
import type { Template } from '../catalogue/index-document.ts';
import type { SourceRow } from '../entities.ts';
import type { Sources } from './sources.ts';

/** All templates of sources that are enabled. */
export async function allTemplates(
    sources: Sources
): Promise<readonly { readonly source: SourceRow; readonly template: Template }[]> {
    return (await sources.list())
        .filter(({ enabled }) => enabled)
        .flatMap((source) =>
            (JSON.parse(source.templates) as Template[]).map((template) => ({ source, template }))
        );
}
