/* What tools of ALPS include; nothing that is asked of it here is declared in it. */
#ifndef ALPS_TOOL_ASSIST_H
#define ALPS_TOOL_ASSIST_H

#endif
