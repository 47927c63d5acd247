/* What the test capi/inlined disassembles: each function is one call of the interface, as a program makes it. To a rank whose
   segment is mapped, and with an event that has come to pass, it is to go to its end without a call. */
#include <gasnetex.h>

int put8(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source);
int get8(gex_TM_t tm, void *dest, gex_Rank_t rank, void *source);
int put8_value(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value);
int put4_value(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value);
gex_RMA_Value_t get8_value(gex_TM_t tm, gex_Rank_t rank, void *source);
gex_RMA_Value_t get1_value(gex_TM_t tm, gex_Rank_t rank, void *source);
gex_Event_t put8_event(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source);
gex_Event_t put8_leaf(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source, gex_Event_t *leaf);
gex_Event_t put8_value_event(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value);
gex_Event_t get8_event(gex_TM_t tm, void *dest, gex_Rank_t rank, void *source);
int put8_implicit(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source);
int put8_value_implicit(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value);
int get8_implicit(gex_TM_t tm, void *dest, gex_Rank_t rank, void *source);
int put64(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source);
int test(gex_Event_t event);
void wait_for(gex_Event_t event);

int put8(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source) {
  return gex_RMA_PutBlocking(tm, rank, dest, source, 8, 0);
}
int get8(gex_TM_t tm, void *dest, gex_Rank_t rank, void *source) {
  return gex_RMA_GetBlocking(tm, dest, rank, source, 8, 0);
}
int put8_value(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value) {
  return gex_RMA_PutBlockingVal(tm, rank, dest, value, 8, 0);
}
int put4_value(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value) {
  return gex_RMA_PutBlockingVal(tm, rank, dest, value, 4, 0);
}
gex_RMA_Value_t get8_value(gex_TM_t tm, gex_Rank_t rank, void *source) {
  return gex_RMA_GetBlockingVal(tm, rank, source, 8, 0);
}
gex_RMA_Value_t get1_value(gex_TM_t tm, gex_Rank_t rank, void *source) {
  return gex_RMA_GetBlockingVal(tm, rank, source, 1, 0);
}
gex_Event_t put8_event(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source) {
  return gex_RMA_PutNB(tm, rank, dest, source, 8, GEX_EVENT_NOW, 0);
}
gex_Event_t put8_leaf(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source, gex_Event_t *leaf) {
  return gex_RMA_PutNB(tm, rank, dest, source, 8, leaf, 0);
}
gex_Event_t put8_value_event(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value) {
  return gex_RMA_PutNBVal(tm, rank, dest, value, 8, 0);
}
gex_Event_t get8_event(gex_TM_t tm, void *dest, gex_Rank_t rank, void *source) {
  return gex_RMA_GetNB(tm, dest, rank, source, 8, 0);
}
int put8_implicit(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source) {
  return gex_RMA_PutNBI(tm, rank, dest, source, 8, GEX_EVENT_NOW, 0);
}
int put8_value_implicit(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value) {
  return gex_RMA_PutNBIVal(tm, rank, dest, value, 8, 0);
}
int get8_implicit(gex_TM_t tm, void *dest, gex_Rank_t rank, void *source) {
  return gex_RMA_GetNBI(tm, dest, rank, source, 8, 0);
}
int put64(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source) {
  return gex_RMA_PutBlocking(tm, rank, dest, source, 64, 0);
}
int test(gex_Event_t event) { return gex_Event_Test(event); }
void wait_for(gex_Event_t event) { gex_Event_Wait(event); }
