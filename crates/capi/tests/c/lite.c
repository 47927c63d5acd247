/* An object of the tools that uses nothing of a library. */
#define GASNETT_LITE_MODE 1
#include <gasnet_tools.h>
GASNETT_IDENT(lite_mark, "$LiteMark: 1 $");
int lite(void);
int lite(void) { return gasnett_linkconfig_idiotcheck() == 1 ? 42 : 0; }
